/**
 * Boots the mock instances of another endpoint as machines here and keeps both in sync: instances terminated there are
 * powered off here, and machines that power themselves off here are terminated there. Level-triggered: each round
 * compares both sides completely.
 */
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Catalogue } from '../ec2/catalogue.ts';
import type { Fleet } from '../ec2/fleet.ts';
import type { Instance } from '../ec2/instance.ts';
import type { IdFile } from '../id-file.ts';
import type { Log } from '../log.ts';
import type { ForeignEc2, ForeignInstance } from './foreign-ec2.ts';

export interface StandInParts {
  clock: Clock;
  catalogue: Catalogue;
  fleet: Fleet;
  foreign: ForeignEc2;
  /** Instances that have been booted: none of them is booted again. */
  booted: IdFile;
  log: Log;
}

/** Interval between two rounds, and so the maximum delay of a boot. */
const LOOK_EVERY_MS = 500;
/** An instance missing from all lists for this long is gone: some endpoints forget ended instances at once. */
const MISSING_MS = 5_000;
/** Time limit for terminating instances at the other endpoint when the sandbox ends. */
const FAREWELL_MS = 3_000;
/** The machines' role: the other endpoint may not have instance profiles. */
const ROLE = 'crawlfleet-stand-in';

const GONE: ReadonlySet<string> = new Set(['shutting-down', 'terminated']);
const OFF: ReadonlySet<string> = new Set(['stopping', 'stopped']);

interface Adopted {
  instance: Instance;
  /** When a list last showed it. */
  seenAtMs: number;
  /** It was stopped there; when it runs there again, it is started here. */
  stoppedThere: boolean;
}

export class StandIn {
  readonly #parts: StandInParts;
  readonly #adopted = new Map<string, Adopted>();
  readonly #closing = new AbortController();
  #watching: Promise<void> = Promise.resolve();
  #lastProblem = '';

  constructor(parts: StandInParts) {
    this.#parts = parts;
  }

  /** Runs rounds until closed. */
  start(): void {
    this.#watching = this.#watch();
  }

  /** Terminates the instances at the other endpoint, if it answers. The fleet ends the machines themselves. */
  async close(): Promise<void> {
    const { clock, foreign } = this.#parts;
    this.#closing.abort();
    const limit = new AbortController();
    await Promise.race([this.#sayFarewell(), clock.sleep(FAREWELL_MS, limit.signal)]);
    limit.abort();
    foreign.close();
  }

  async #sayFarewell(): Promise<void> {
    await this.#watching;
    const alive = [...this.#adopted.values()].filter(({ instance }) => !GONE.has(instance.state));
    await Promise.all(alive.map(({ instance }) => this.#parts.foreign.terminate(instance.id).catch(() => undefined)));
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.look().then(
        () => (this.#lastProblem = ''),
        (error: unknown) => this.#tell(describeError(error)),
      );
      await this.#parts.clock.sleep(LOOK_EVERY_MS, signal);
    }
  }

  /** Runs one round. Throws, and ends nothing, when the other endpoint does not answer. */
  async look(): Promise<void> {
    const listed = await this.#parts.foreign.list();
    if (this.#closing.signal.aborted) return;
    for (const foreign of listed) await this.#follow(foreign);
    const nowMs = this.#parts.clock.now();
    const shown = new Set(listed.map(({ id }) => id));
    for (const [id, { instance, seenAtMs }] of this.#adopted) {
      if (!shown.has(id) && nowMs - seenAtMs >= MISSING_MS) this.#end(instance);
    }
  }

  /** A failing instance must not block the others. */
  async #follow(foreign: ForeignInstance): Promise<void> {
    try {
      const known = this.#adopted.get(foreign.id);
      if (known) await this.#align(known, foreign);
      else if (foreign.state === 'pending' || foreign.state === 'running') await this.#adopt(foreign);
    } catch (error) {
      this.#tell(`${foreign.id}: ${describeError(error)}`);
    }
  }

  async #adopt(seen: ForeignInstance): Promise<void> {
    const { foreign, booted, fleet, log } = this.#parts;
    if (booted.has(seen.id)) {
      // Its machine ended with the previous process, and a first boot happens only once: on EC2 such an instance would
      // be lost.
      log.write('stand-in', { id: seen.id, what: 'its machine is gone: requesting its termination' });
      return foreign.terminate(seen.id);
    }
    const [userData, shutdownBehavior] = await Promise.all([
      foreign.userData(seen.id),
      foreign.shutdownBehavior(seen.id),
    ]);
    if (this.#closing.signal.aborted) return;
    await booted.add(seen.id);
    const instance = fleet.adopt(this.#specOf(seen, userData, shutdownBehavior), seen, seen.tags);
    if (instance === null) throw new Error('the subnet has no free address left');
    this.#adopted.set(seen.id, { instance, seenAtMs: this.#parts.clock.now(), stoppedThere: false });
    log.write('stand-in', { id: seen.id, address: instance.address, what: 'booting' });
  }

  #specOf(seen: ForeignInstance, userData: string, shutdownBehavior: 'stop' | 'terminate') {
    const { catalogue } = this.#parts;
    // In its own zone if the load balancer serves one of that name, so that instances spread over zones as they do
    // there.
    const subnet = catalogue.subnets.find((s) => s.isDefault && s.zone === seen.zone) ?? catalogue.subnets[0]!;
    return {
      imageId: seen.imageId,
      instanceType: seen.instanceType,
      architecture: seen.architecture,
      subnetId: subnet.id,
      vpcId: catalogue.vpcId,
      zone: subnet.zone,
      securityGroupIds: [catalogue.securityGroupId],
      instanceProfile: ROLE,
      userData,
      shutdownBehavior,
      publicAddress: true,
      metadata: { httpTokens: 'required' as const, hopLimit: 1 },
      keyName: null,
      clientToken: null,
      terminationProtection: false,
    };
  }

  async #align(known: Adopted, seen: ForeignInstance): Promise<void> {
    const { fleet, foreign } = this.#parts;
    const { instance } = known;
    known.seenAtMs = this.#parts.clock.now();
    if (GONE.has(seen.state)) return this.#end(instance);
    if (GONE.has(instance.state)) return foreign.terminate(seen.id);
    if (OFF.has(seen.state)) {
      known.stoppedThere = true;
      if (instance.state === 'running') fleet.stop(instance);
      return;
    }
    if (instance.state !== 'stopped') return;
    if (!known.stoppedThere) return foreign.stop(seen.id);
    known.stoppedThere = false;
    fleet.start(instance);
  }

  #end(instance: Instance): void {
    if (!GONE.has(instance.state)) this.#parts.fleet.terminate(instance);
  }

  /** Logs a persistent problem only once. */
  #tell(problem: string): void {
    if (problem !== this.#lastProblem) this.#parts.log.write('stand-in', { problem });
    this.#lastProblem = problem;
  }
}
