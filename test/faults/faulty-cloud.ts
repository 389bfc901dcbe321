/** EC2, ELBv2 and S3 in memory that fail as AWS does, on demand. */
import type { ObjectInfo } from '../../shared/ports/object-store.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { CloudInstance, LaunchRequest, LaunchResult } from '../../orchestrator/core/cloud/compute.ts';
import { MemoryCompute } from '../../orchestrator/core/simulation/cloud/memory-compute.ts';
import { MemoryLoadBalancer } from '../../orchestrator/core/simulation/cloud/memory-load-balancer.ts';
import { MemoryObjectStore } from '../../orchestrator/core/simulation/cloud/memory-objects.ts';
import type { Balancer, TargetHealth } from '../../orchestrator/core/cloud/load-balancer.ts';

/** Moments of a run that faults wait for. */
export type Moment = 'P' | 'L' | 'B' | 'R' | 'D' | 'C' | 'U' | 'K' | 'T' | 'M';
export type OnMoment = (moment: Moment) => void;

const isBefore = (clock: Clock, untilMs: number): boolean => clock.now() < untilMs;

export class FaultyCompute extends MemoryCompute {
  /** Launches whose reply is lost from now on. */
  lostReplies = 0;
  /** The result that launches are refused with, and until when. */
  refusal: { result: Exclude<LaunchResult, { kind: 'launched' }>; untilMs: number; subnet: string | null } | null =
    null;
  throttledUntilMs = 0;
  /** How long fresh machines are not listed. */
  invisibleMs = 0;
  /** Terminate calls that fail, whose reply is lost, or that do nothing. */
  terminateFails = 0;
  terminateRepliesLost = 0;
  stubbornUntilMs = 0;
  readonly terminated = new Set<string>();
  /** Machines whose launch was answered. */
  readonly launchedAnswered = new Set<string>();
  readonly #clock: Clock;
  readonly #onMoment: OnMoment;

  constructor(clock: Clock, onMoment: OnMoment) {
    super({ clock, pendingMs: 300, shuttingDownMs: 300 });
    this.#clock = clock;
    this.#onMoment = onMoment;
  }

  override async launch(request: LaunchRequest): Promise<LaunchResult> {
    this.#onMoment('L');
    if (isBefore(this.#clock, this.throttledUntilMs))
      return { kind: 'refused', cause: 'throttled', message: 'RequestLimitExceeded' };
    const { refusal } = this;
    if (
      refusal &&
      isBefore(this.#clock, refusal.untilMs) &&
      (refusal.subnet === null || refusal.subnet === request.subnetId)
    )
      return refusal.result;
    const result = await super.launch(request);
    if (this.lostReplies <= 0) {
      if (result.kind === 'launched') this.launchedAnswered.add(result.instance.id);
      return result;
    }
    this.lostReplies--;
    return { kind: 'unknown', message: 'the reply was lost' };
  }

  override async list(tag: { key: string; value: string }): Promise<CloudInstance[]> {
    if (isBefore(this.#clock, this.throttledUntilMs)) throw new Error('RequestLimitExceeded');
    const all = await super.list(tag);
    return all.filter((i) => this.#clock.now() - i.launchedAtMs >= this.invisibleMs);
  }

  override async terminate(ids: readonly string[]): Promise<void> {
    this.#onMoment('T');
    if (isBefore(this.#clock, this.throttledUntilMs) || this.terminateFails-- > 0)
      throw new Error('RequestLimitExceeded');
    for (const id of ids) this.terminated.add(id);
    if (isBefore(this.#clock, this.stubbornUntilMs)) return;
    await super.terminate(ids);
    if (this.terminateRepliesLost-- > 0) throw new Error('socket hang up');
  }
}

export class FaultyBalancer extends MemoryLoadBalancer {
  /** Targets reported unhealthy, and until when; null for all. */
  unhealthy: { ids: ReadonlySet<string> | null; untilMs: number } = { ids: null, untilMs: 0 };
  /** Registrations answered with InvalidTarget. */
  invalidTargets = 0;
  readonly #clock: Clock;
  readonly #onMoment: OnMoment;

  constructor(clock: Clock, compute: MemoryCompute, onMoment: OnMoment) {
    super({ clock, isRunning: (id) => compute.isRunning(id) });
    this.#clock = clock;
    this.#onMoment = onMoment;
  }

  override async register(balancer: Balancer, id: string): Promise<'registered' | 'not-running'> {
    this.#onMoment('R');
    if (this.invalidTargets-- > 0) return 'not-running';
    return super.register(balancer, id);
  }

  override async health(balancer: Balancer): Promise<Map<string, TargetHealth>> {
    const health = await super.health(balancer);
    if (!isBefore(this.#clock, this.unhealthy.untilMs)) return health;
    const { ids } = this.unhealthy;
    return new Map([...health].map(([id, own]) => [id, ids === null || ids.has(id) ? 'unhealthy' : own]));
  }
}

export class FaultyObjects extends MemoryObjectStore {
  failsUntilMs = 0;
  /** Writes that happen although their reply is lost. */
  lostPutReplies = 0;
  readonly #writtenAt = new Map<string, number>();
  readonly #clock: Clock;
  readonly #onMoment: OnMoment;

  constructor(clock: Clock, onMoment: OnMoment) {
    super(clock);
    this.#clock = clock;
    this.#onMoment = onMoment;
  }

  override async putIfAbsent(key: string, body: Uint8Array): Promise<'created' | 'exists'> {
    this.#onMoment('U');
    this.#fail();
    const result = await super.putIfAbsent(key, body);
    if (result === 'created') this.#writtenAt.set(key, this.#clock.now());
    if (this.lostPutReplies > 0) {
      this.lostPutReplies--;
      throw new Error('socket hang up');
    }
    return result;
  }

  /** When the object was written; null when there is none. */
  writtenAtMs(key: string): number | null {
    return this.#writtenAt.get(key) ?? null;
  }

  override async get(key: string): Promise<Uint8Array | null> {
    this.#fail();
    return super.get(key);
  }

  override async *list(prefix: string): AsyncIterable<ObjectInfo> {
    this.#fail();
    yield* super.list(prefix);
  }

  #fail(): void {
    if (isBefore(this.#clock, this.failsUntilMs)) throw new Error('SlowDown');
  }
}
