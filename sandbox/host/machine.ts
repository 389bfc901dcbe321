/**
 * One instance as a process on this machine: does what the boot of a real instance does (user data, timer, service), in
 * the same order and with the same results.
 */
import { textBefore } from '../../shared/domain/text-before.ts';
import { createWriteStream, existsSync, mkdirSync, writeFileSync, type WriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { once } from 'node:events';
import { join } from 'node:path';
import { INSTANCE_ENVIRONMENT, NODE_FLAGS } from '../../shared/domain/instance-process.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { type AnyUserData, parseUserData } from '../../shared/wire/settings.ts';
import type { Machine, MachineEvent, MachineSpec, ShellRun } from '../ec2/machine.ts';
import { sleepUntil } from '../end-timer.ts';
import type { FaultBook } from '../faults.ts';
import { type Metadata, startMetadataServer } from '../imds/metadata.ts';
import { fetchBundle } from './fetch-bundle.ts';
import { Service } from './service.ts';
import { startShell } from './shell.ts';
import { PROGRAM, RUNTIME, isForThisMachine, unpackBundle } from './unpack-bundle.ts';

export interface MachineOptions {
  spec: MachineSpec;
  clock: Clock;
  /** Holds one folder per machine. */
  folder: string;
  /** Hashes of the programs that may run. */
  allowedBundles: Pick<ReadonlySet<string>, 'has'>;
  /** What is added to the program's environment. */
  environment: Record<string, string>;
  faults: FaultBook;
  /** Called when the machine has powered itself off. */
  onPowerOff: () => void;
}

export class ProcessMachine implements Machine {
  readonly folder: string;
  readonly #console: MachineConsole;
  readonly #options: MachineOptions;
  #booted = false;
  #power = new AbortController();
  #service: Service | null = null;
  #running: Promise<void> = Promise.resolve();
  #hasAgent = false;
  /** The environment of the program; empty until it has been started. */
  #programEnvironment: Record<string, string> = {};
  readonly #shells = new Set<ShellRun>();

  constructor(options: MachineOptions) {
    this.#options = options;
    this.#power.abort();
    this.folder = join(options.folder, options.spec.id);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    this.#console = new MachineConsole(join(this.folder, 'console.log'));
  }

  get pid(): number | null {
    return this.#service?.pid ?? null;
  }

  powerOn(): void {
    if (!this.#power.signal.aborted) return;
    this.#power = new AbortController();
    this.#running = this.#live(this.#options.faults.takeForBoot(), this.#power.signal);
  }

  /** Ends the program and the metadata service. */
  async powerOff(): Promise<void> {
    this.#power.abort();
    for (const shell of this.#shells) shell.cancel();
    await this.#service?.stop();
    await this.#running;
  }

  get hasAgent(): boolean {
    return this.#hasAgent && !this.#power.signal.aborted;
  }

  execute(script: string, timeoutMs: number): ShellRun {
    const tools = join(this.folder, 'tools');
    mkdirSync(tools, { recursive: true });
    writeFileSync(join(tools, 'systemctl'), SYSTEMCTL, { mode: 0o700 });
    const shell = startShell({
      script,
      folder: this.folder,
      environment: {
        ...this.#programEnvironment,
        PATH: `${tools}:${this.#options.environment.PATH ?? ''}`,
        CRAWLFLEET_HOME: this.folder,
        MAINPID: String(this.pid ?? ''),
      },
      timeoutMs,
      clock: this.#options.clock,
    });
    this.#shells.add(shell);
    void shell.done.then(() => this.#shells.delete(shell));
    return shell;
  }

  consoleOutput(): Buffer {
    return this.#console.output();
  }

  close(): void {
    this.#console.close();
  }

  /** False when no program is running. Nothing is printed on the console: on EC2 it would not be visible either. */
  inject(event: MachineEvent): boolean {
    return this.#service?.inject(event) ?? false;
  }

  async #live(fault: ReturnType<FaultBook['takeForBoot']>, power: AbortSignal): Promise<void> {
    const { spec, clock } = this.#options;
    let metadata: Metadata | null = null;
    try {
      metadata = await startMetadataServer(spec, clock);
      this.#console.line(
        `boot: ${spec.id} at ${spec.address} (${spec.instanceType}, ${spec.zone}), metadata at ${metadata.url}`,
      );
      await this.#carryOut(fault, metadata, power);
    } catch (error) {
      this.#console.line(`boot: failed: ${describeError(error)}`);
    } finally {
      if (!power.aborted) await once(power, 'abort');
      await metadata?.close();
      this.#service = null;
      this.#console.line('power off');
    }
  }

  async #carryOut(fault: ReturnType<FaultBook['takeForBoot']>, metadata: Metadata, power: AbortSignal): Promise<void> {
    const firstBoot = !this.#booted;
    this.#booted = true;
    if (fault === 'silent-boot') {
      this.#console.line('cloud-init: fault silent-boot: the user data was not carried out');
      return;
    }
    const settings = this.#readSettings();
    if (!settings || power.aborted) return;
    void this.#powerOffAt(Date.parse(settings.powerOffAt), power);
    if (firstBoot) await this.#install(settings, power);
    const program = join(this.folder, PROGRAM);
    if (!existsSync(program)) {
      this.#console.line('crawl-api.service: nothing was installed at the first boot, and user data runs only then');
      return;
    }
    // The bundle's Node, if it fits this machine; else the one that runs the sandbox.
    const own = join(this.folder, RUNTIME);
    const node = (await isForThisMachine(own)) ? own : process.execPath;
    if (power.aborted) return;
    this.#hasAgent = settings.commands === true;
    const dead = fault === 'dead-boot';
    if (dead) this.#console.line('crawl-api.service: fault dead-boot: the program is replaced by one that fails');
    await this.#serve(node, dead ? ['-e', 'process.exit(1)'] : [program], metadata, power);
  }

  #readSettings(): AnyUserData | null {
    const { userData } = this.#options.spec;
    try {
      if (userData === '') throw new Error('there is no user data');
      return parseUserData(userData);
    } catch (error) {
      this.#console.line(`cloud-init: nothing carried out: ${firstLine(describeError(error))}`);
      return null;
    }
  }

  /** Installs the program and the state folder; throws when the bundle is not allowed or cannot be fetched. */
  async #install(settings: AnyUserData, signal: AbortSignal): Promise<void> {
    const { url, sha256 } = settings.bundle;
    if (!this.#options.allowedBundles.has(sha256))
      throw new Error(`the bundle with SHA-256 ${sha256} is not one this sandbox was allowed to run (--allow-bundle)`);
    const { clock, spec } = this.#options;
    const onRetry = (problem: string): void => this.#console.line(`cloud-init: trying again: ${problem}`);
    const body = await fetchBundle({ url, sha256, localAddress: spec.address, signal, clock, onRetry });
    await mkdir(join(this.folder, 'state'), { recursive: true });
    await unpackBundle(body, this.folder, signal);
    this.#console.line(`cloud-init: installed the bundle ${sha256} (${body.length} bytes)`);
  }

  async #serve(node: string, args: string[], metadata: Metadata, power: AbortSignal): Promise<void> {
    this.#programEnvironment = {
      ...this.#options.environment,
      HOME: this.folder,
      ...INSTANCE_ENVIRONMENT,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata.url,
      STATE_DIRECTORY: join(this.folder, 'state'),
    };
    const service = new Service({
      clock: this.#options.clock,
      command: node,
      args: [...NODE_FLAGS, ...args],
      folder: this.folder,
      environment: this.#programEnvironment,
      onOutput: (chunk) => this.#console.write(chunk),
      onEvent: (line) => this.#console.line(line),
    });
    this.#service = service;
    const end = await service.run();
    if (end === 'done' && !power.aborted) this.#switchOff('the program is done');
  }

  /** The power-off timer from the start of the user data: it fires whatever else fails on the machine. */
  async #powerOffAt(atMs: number, power: AbortSignal): Promise<void> {
    await sleepUntil(this.#options.clock, atMs, power);
    if (!power.aborted) this.#switchOff(`it is ${new Date(atMs).toISOString()}, the time set at boot`);
  }

  #switchOff(why: string): void {
    this.#console.line(`systemd: powering off: ${why}`);
    this.#options.onPowerOff();
  }
}

/** systemd for commands: it can kill the service of the program, which is then started again. */
const SYSTEMCTL = `#!/bin/sh
case "$*" in
  'kill --signal=SIGKILL crawlfleet.service') ;;
  *) echo "the sandbox has no systemctl $*" >&2; exit 1 ;;
esac
if [ -z "$MAINPID" ]; then echo 'the service does not run' >&2; exit 1; fi
kill -s KILL -- "-$MAINPID"
`;

const firstLine = (text: string): string => textBefore(text, '\n').slice(0, 500);

/** The size of the console output that is kept: as much as EC2 keeps. */
const KEPT_BYTES = 65_536;
/** A program in a log flood must not fill the disk. */
const MAX_FILE_BYTES = 4_000_000;

class MachineConsole {
  readonly #file: WriteStream;
  #chunks: Buffer[] = [];
  #keptBytes = 0;
  #fileBytes = 0;

  constructor(path: string) {
    this.#file = createWriteStream(path, { flags: 'a', mode: 0o600 });
    this.#file.on('error', () => {});
  }

  /** Output of the machine's own parts (boot, service manager). */
  line(text: string): void {
    this.write(Buffer.from(`${text}\n`));
  }

  /** Output of a program. */
  write(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#keptBytes += chunk.length;
    let [oldest] = this.#chunks;
    while (oldest !== undefined && this.#chunks.length > 1 && this.#keptBytes - oldest.length >= KEPT_BYTES) {
      this.#keptBytes -= oldest.length;
      this.#chunks.shift();
      [oldest] = this.#chunks;
    }
    if (this.#fileBytes < MAX_FILE_BYTES) this.#file.write(chunk);
    this.#fileBytes += chunk.length;
  }

  output(): Buffer {
    const all = Buffer.concat(this.#chunks);
    return all.subarray(Math.max(0, all.length - KEPT_BYTES));
  }

  close(): void {
    this.#file.end();
  }
}
