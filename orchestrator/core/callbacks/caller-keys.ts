/**
 * The keys to check a callback's sender with, as far as possible without the database: unauthenticated callers must not
 * be able to load it. A claim's token never changes, nor does a key once it is bound, so both are cached for the whole
 * run.
 */
import { type EpochId, epochKey } from '../../../shared/domain/epoch-id.ts';
import type { KeyObject } from 'node:crypto';
import { importPublicKey } from '../../../shared/wire/signature.ts';
import type { Core } from '../model/core.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';

/** The keys that callbacks of a slot and epoch are checked with. */
export interface Credentials {
  readonly token: string;
  /** The key that hello has bound; null until then. */
  publicKey: KeyObject | null;
}

type CallerId = EpochId & { run: string };

/** Maximum concurrent look-ups for unknown callers: half of the connection pool stays free for authenticated ones. */
const MAX_LOOKUPS = 4;
/** Maximum look-ups per second: the loop sees each new claim within a heartbeat; only younger ones need one. */
const MAX_LOOKUPS_A_SECOND = 50;

export class CallerKeys {
  readonly #core: Pick<Core, 'runId' | 'clock' | 'fleet'>;
  readonly #world: () => World | null;
  /** The credentials by `slot.epoch`: never more than the run has claims. */
  readonly #known = new Map<string, Credentials>();
  #underWay = 0;
  #second = { fromMs: -Infinity, lookups: 0 };

  constructor(core: Pick<Core, 'runId' | 'clock' | 'fleet'>, world: () => World | null) {
    this.#core = core;
    this.#world = world;
  }

  /**
   * Finds the credentials of a caller in memory, then in the last observed world, and only then, a few at a time, in
   * the database. Null: there is no such claim, or too many unknown callers just now; an honest caller retries. With
   * `withKey`, memory counts only if it has the key.
   */
  async find(place: CallerId, withKey: boolean): Promise<Credentials | null> {
    const known = this.known(place, withKey);
    if (known !== null) return known;
    if (place.run !== this.#core.runId || !this.#mayLookUp()) return null;
    this.#underWay++;
    try {
      const record = await this.#core.fleet.get(place);
      return record ? this.#remember(record) : null;
    } finally {
      this.#underWay--;
    }
  }

  /** What `find` finds without the database; null for all else. */
  known(place: CallerId, withKey: boolean): Credentials | null {
    if (place.run !== this.#core.runId) return null;
    const known = this.#remembered(place) ?? this.#seen(place);
    return known !== null && withKey && known.publicKey === null ? null : known;
  }

  /** Binds the key of an accepted hello to the instance. */
  bound(place: CallerId, publicKey: KeyObject): void {
    const known = this.#remembered(place);
    if (known) known.publicKey ??= publicKey;
  }

  #remembered(at: EpochId): Credentials | undefined {
    return this.#known.get(epochKey(at));
  }

  #seen(caller: CallerId): Credentials | null {
    const record = this.#world()?.fleet.find(caller);
    return record ? this.#remember(record) : null;
  }

  #remember(record: InstanceRecord): Credentials {
    const known = this.#remembered(record) ?? { token: record.token, publicKey: null };
    if (record.publicKey !== null) known.publicKey ??= importPublicKey(record.publicKey);
    this.#known.set(epochKey(record), known);
    return known;
  }

  #mayLookUp(): boolean {
    const nowMs = this.#core.clock.monotonic();
    if (nowMs - this.#second.fromMs >= 1_000) this.#second = { fromMs: nowMs, lookups: 0 };
    if (this.#underWay >= MAX_LOOKUPS || this.#second.lookups >= MAX_LOOKUPS_A_SECOND) return false;
    this.#second.lookups++;
    return true;
  }
}
