/**
 * Takes over what instances give back, and says what they are asked for. The database alone decides who owns a chunk; what is
 * remembered here only keeps this main server from asking twice (docs/decisions/rebalancing.md).
 */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import { isUnavailable } from '../decide/ban-policy.ts';
import type { Core } from '../model/core.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';

/** Asked so long without giving anything: it has begun something of every chunk. */
const PATIENCE_HEARTBEATS = 8;

export class Transfers {
  readonly #core: Core;
  /** By `slot.epoch`: when it last gave something back. */
  readonly #gaveAtMs = new Map<string, number>();
  /** By `slot.epoch`: since when it has been asked in vain, by the monotonic clock. */
  readonly #askedSinceMs = new Map<string, number>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** Makes the chunks that it gave back wait for an owner, unless somebody has them already. */
  async take(record: InstanceRecord, transferred: readonly string[]): Promise<void> {
    if (transferred.length === 0) return;
    const core = this.#core;
    const { slot, epoch } = record;
    const products = await core.work.transferChunks(core.runId, slot, epoch, transferred, core.fence, core.clock.now());
    this.#gaveAtMs.set(epochKey({ slot, epoch }), core.clock.now());
    this.#askedSinceMs.delete(epochKey({ slot, epoch }));
    if (products === 0) return;
    core.processState.lastTransferMs = core.clock.now();
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
    const { forecast, limits } = world;
    const { slot, epoch } = record;
    const key = epochKey({ slot, epoch });
    const count = forecast?.balance.give.get(slot) ?? 0;
    // What it gave is not in an older outlook.
    const gaveMs = this.#gaveAtMs.get(key) ?? -Infinity;
    // A time to come is from before the clock was set back.
    const isSettled = gaveMs < (forecast?.atMs ?? -Infinity) || gaveMs > core.clock.now();
    if (count === 0 || !isSettled || record.sealed || isUnavailable(record)) {
      this.#askedSinceMs.delete(key);
      return [];
    }
    const sinceMs = this.#askedSinceMs.get(key) ?? core.clock.monotonic();
    this.#askedSinceMs.set(key, sinceMs);
    if (core.clock.monotonic() - sinceMs > PATIENCE_HEARTBEATS * limits.heartbeatMs)
      core.processState.nothingToGive.add(key);
    const chunks = await core.work.chunksOf(core.runId, slot, epoch);
    return chunks.slice(0, count).map((c) => c.id);
  }
}
