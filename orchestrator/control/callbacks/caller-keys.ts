/**
 * Who a callback claims to come from, as far as possible without the database: anybody who reaches the port can forge
 * as fast as he likes, and that must cost the run's own work nothing. A claim's token never changes, nor does a key once it
 * is bound, so what was read once is good for the whole run.
 */
import { epochKey } from '../../../shared/domain/epoch-id.ts';
import type { KeyObject } from 'node:crypto';
import { importPublicKey } from '../../../shared/wire/signature.ts';
import type { Core } from '../model/core.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';

/** What a callback of a slot and epoch is checked with. */
export interface Credentials {
  readonly token: string;
  /** Null until hello has bound one. */
  publicKey: KeyObject | null;
}

export interface CallerId {
  run: string;
  slot: number;
  epoch: number;
}

/** Look-ups for callers that nobody knows yet: half of the pool's connections stay for those whose signature was right. */
const MAX_LOOKUPS = 4;
/** The loop sees each new claim within a heartbeat, so only what is younger has to be looked up, and that is little. */
const MAX_LOOKUPS_A_SECOND = 50;

export class CallerKeys {
  readonly #core: Pick<Core, 'runId' | 'clock' | 'fleet'>;
  readonly #world: () => World | null;
  /** By `slot.epoch`: never more than the run has claims. */
  readonly #known = new Map<string, Credentials>();
  #underWay = 0;
  #second = { fromMs: -Infinity, lookups: 0 };

  constructor(core: Pick<Core, 'runId' | 'clock' | 'fleet'>, world: () => World | null) {
    this.#core = core;
    this.#world = world;
  }

  /**
   * From memory, then from the last world, and only then, a few at a time, from the database. Null: there is no such claim, or
   * too many strangers ask just now, and an honest caller comes again. With `withKey`, memory counts only when the key is in it.
   */
  async find(place: CallerId, withKey: boolean): Promise<Credentials | null> {
    if (place.run !== this.#core.runId) return null;
    const known = this.#remembered(place) ?? this.#seen(place);
    if (known && !(withKey && known.publicKey === null)) return known;
    if (!this.#mayLookUp()) return null;
    this.#underWay++;
    try {
      const record = await this.#core.fleet.get(place.run, place.slot, place.epoch);
      return record ? this.#remember(record) : null;
    } finally {
      this.#underWay--;
    }
  }

  /** After a hello was taken: its key is the instance's from now on. */
  bound(place: CallerId, publicKey: KeyObject): void {
    const known = this.#remembered(place);
    if (known) known.publicKey ??= publicKey;
  }

  #remembered({ slot, epoch }: CallerId): Credentials | undefined {
    return this.#known.get(epochKey({ slot, epoch }));
  }

  #seen({ slot, epoch }: CallerId): Credentials | null {
    const record = this.#world()?.instances.find((i) => i.slot === slot && i.epoch === epoch);
    return record ? this.#remember(record) : null;
  }

  #remember({ slot, epoch, token, publicKey }: InstanceRecord): Credentials {
    const known = this.#remembered({ run: this.#core.runId, slot, epoch }) ?? { token, publicKey: null };
    if (publicKey !== null) known.publicKey ??= importPublicKey(publicKey);
    this.#known.set(epochKey({ slot, epoch }), known);
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
