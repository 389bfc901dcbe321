/** Assembles the sandbox: its regions, S3, and the endpoint in front of them. */
import { randomBytes, createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../shared/ports/clock.ts';
import type { Random } from '../shared/ports/random.ts';
import { ConditionBoard } from './conditions.ts';
import type { EndTimer } from './end-timer.ts';
import { FaultBook } from './faults.ts';
import { openIdFile } from './id-file.ts';
import { ProcessMachine } from './host/machine.ts';
import { startSupervisor } from './supervisor/start-supervisor.ts';
import { closeServer, listen } from '../shared/adapters/http/listening.ts';
import { openLog } from './log.ts';
import { Regions } from './region.ts';
import { BucketStore } from './s3/bucket-store.ts';
import { MultipartUploads } from './s3/multipart-uploads.ts';
import { startEndpoint } from './server/endpoint.ts';
import type { StandInFor } from './flags.ts';
import { createServer } from 'node:net';
import { AppError } from '../shared/domain/errors.ts';
import { openForeignEc2 } from './stand-in/foreign-ec2.ts';
import { StandIn } from './stand-in/stand-in.ts';

export interface SandboxOptions {
  port: number;
  dataDir: string;
  region: string;
  allowedBundles: ReadonlySet<string>;
  /** The run whose instances are booted here; null: its instances are launched here. */
  standInFor: StandInFor | null;
  controlToken: string;
  /** Environment of every instance: the search path, and what its image would provide. */
  environment: Record<string, string>;
  clock: Clock;
  random: Random;
  onShutdown: (why: string) => void;
  timer: EndTimer;
}

export interface Sandbox {
  endpoint: string;
  network: string;
  log: (event: string, fields?: Record<string, unknown>) => void;
  /** Ends every instance and every listener. Objects stay in the data folder. */
  close(): Promise<void>;
}

/** Throws AppError `platform`, `port-taken` or `sandbox-failed` (the data folder is in use). */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { clock, dataDir, region } = options;
  const lock = await lockDataFolder(dataDir);
  // A new folder for each start: the supervisor of a killed sandbox must never find the instances of the next one.
  const instanceFolder = join(dataDir, 'instances', randomBytes(4).toString('hex'));
  mkdirSync(instanceFolder, { recursive: true, mode: 0o700 });
  const log = openLog(join(dataDir, 'sandbox.log'), clock);
  const supervisor = startSupervisor(instanceFolder, (message) => log.write('supervisor', { message }));

  const faults = new FaultBook();
  const conditions = new ConditionBoard();
  const { environment } = options;
  const allowedBundles = await openIdFile(join(dataDir, 'allowed-bundles'), options.allowedBundles);
  const machines = { clock, folder: instanceFolder, allowedBundles, environment, faults };
  const regions = new Regions(region, {
    clock,
    faults,
    conditions,
    log: log.write,
    random: options.random,
    makeMachine: (spec, fleet) =>
      new ProcessMachine({ ...machines, spec, onPowerOff: () => fleet.poweredOff(spec.id) }),
  });
  const s3 = { clock, buckets: new BucketStore(join(dataDir, 's3')), uploads: new MultipartUploads() };

  let standIn: StandIn | null = null;

  const closeParts = async (): Promise<void> => {
    // Before anything else: the other endpoint must be notified of instances that end here while it still runs.
    await standIn?.close();
    await regions.close();
    await supervisor.close();
    await regions.release();
    await lock.release();
    await log.close();
  };
  try {
    const { network, catalogue, fleet } = await regions.of(region);
    const endpoint = await startEndpoint(options.port, {
      clock,
      faults,
      conditions,
      log,
      s3,
      regions,
      control: {
        token: options.controlToken,
        regions,
        faults,
        conditions,
        clock,
        shutdown: options.onShutdown,
        timer: options.timer,
        allowBundle: (sha256) => allowedBundles.add(sha256),
      },
    });
    if (options.standInFor) {
      const foreign = await openForeignEc2({ ...options.standInFor, region });
      const booted = await openIdFile(join(dataDir, 'booted-instances'));
      standIn = new StandIn({ clock, catalogue, fleet, log, foreign, booted });
      standIn.start();
      log.write('stand-in', { ...options.standInFor });
    }
    log.write('started', { endpoint: endpoint.url, network: network.cidr, region });
    return {
      endpoint: endpoint.url,
      network: network.cidr,
      log: log.write,
      async close() {
        await endpoint.close();
        await closeParts();
      },
    };
  } catch (error) {
    await closeParts();
    throw error;
  }
}

/**
 * Holds the folder until `release`, or until this process ends: an abstract socket is a name in the kernel, so a killed
 * sandbox leaves nothing behind. Throws AppError `sandbox-failed` when another sandbox holds it.
 */
async function lockDataFolder(folder: string): Promise<{ release: () => Promise<void> }> {
  const name = createHash('sha256').update(realpathSync(folder)).digest('hex');
  const server = createServer((socket) => socket.destroy());
  await listen(server, { path: `\0crawlfleet-sandbox-${name}` }).catch((cause: unknown) => {
    throw new AppError('sandbox-failed', `Another sandbox is using the data folder ${folder}`, {
      hint: 'Give each sandbox its own --data folder, or end the other one.',
      cause,
    });
  });
  return { release: () => closeServer(server) };
}
