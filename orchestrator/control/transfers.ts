/**
 * Takes over what instances give back, and says what they are asked for. The database alone decides who owns a chunk; what is
 * remembered here only keeps this main server from asking twice (docs/decisions/rebalancing.md).
 */
import { isSidelined } from './ban-policy.ts';
import type { Core } from './core.ts';
import type { InstanceRecord } from './stores.ts';
import type { World } from './world.ts';

/** Asked so long without giving anything: it has begun something of every chunk. */
const PATIENCE_HEARTBEATS = 8;

export class HandOvers {
  readonly #core: Core;
  /** By `slot.epoch`: when it last gave something back. */
  readonly #gaveAtMs = new Map<string, number>();
  /** By `slot.epoch`: since when it has been asked in vain, by the clock that never goes back. */
  readonly #askedSinceMs = new Map<string, number>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** Makes the chunks that it gave back wait for an owner, unless somebody has them already. */
  async take(record: InstanceRecord, yielded: readonly string[]): Promise<void> {
    if (yielded.length === 0) return;
    const core = this.#core;
    const { slot, epoch } = record;
    const products = await core.work.takeChunks(core.runId, slot, epoch, yielded, core.fence, core.clock.now());
    this.#gaveAtMs.set(`${slot}.${epoch}`, core.clock.now());
    this.#askedSinceMs.delete(`${slot}.${epoch}`);
    if (products === 0) return;
    core.marks.handedOverMs = core.clock.now();
    const detail = `slot ${slot} has given back ${products} products that others can crawl sooner`;
    core.log.info({ slot, epoch, products }, detail);
    await core.runs.addEvent(core.runId, {
      atMs: core.clock.now(),
      kind: 'chunk',
      slot,
      epoch,
      from: null,
      to: null,
      detail,
    });
  }

  /** Ids of the chunks that it is to give back now: the last granted ones, which it would crawl last. */
  async wanted(world: World, record: InstanceRecord): Promise<string[]> {
    const core = this.#core;
    const { outlook, limits } = world;
    const { slot, epoch } = record;
    const key = `${slot}.${epoch}`;
    const count = outlook?.balance.give.get(slot) ?? 0;
    // What it gave is not in an older outlook.
    const gaveMs = this.#gaveAtMs.get(key) ?? -Infinity;
    // A time to come is from before the clock was set back.
    const isSettled = gaveMs < (outlook?.atMs ?? -Infinity) || gaveMs > core.clock.now();
    if (count === 0 || !isSettled || record.sealed || isSidelined(record)) {
      this.#askedSinceMs.delete(key);
      return [];
    }
    const sinceMs = this.#askedSinceMs.get(key) ?? core.clock.monotonic();
    this.#askedSinceMs.set(key, sinceMs);
    if (core.clock.monotonic() - sinceMs > PATIENCE_HEARTBEATS * limits.heartbeatMs) core.marks.unwilling.add(key);
    const chunks = await core.work.chunksOf(core.runId, slot, epoch);
    return chunks.slice(0, count).map((c) => c.id);
  }
}
