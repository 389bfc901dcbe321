/**
 * What operators ask of hosts while a run of many hosts crawls them (`orchestrator hosts`). A grant brings what was
 * asked before it; this is for the hosts that instances have already. Every reply repeats
 * them until a heartbeat confirms them: a reply may be lost, and this process may end.
 */
import type { Heartbeat } from '../../../shared/wire/callbacks.ts';
import type { Core } from '../model/core.ts';
import type { HostWish } from '../model/stores.ts';
import type { World } from '../model/world.ts';

/** Wishes that one reply has, the oldest first. */
const MOST = 1_000;
/** How often the wishes are read, as a part of the time between two heartbeats of an instance. */
const LOOKS_PER_HEARTBEAT = 10;
/**
 * How far before the newest known wish it looks: operators have clocks of their own, and a wish is stored a moment
 * after it has its time.
 */
const OVERLAP_MS = 600_000;

/** What an instance has not heard of yet, and what it shall say once it has. */
export interface NewWishes {
  version: string;
  wishes: readonly HostWish[];
}

export class HostWishes {
  readonly #core: Pick<Core, 'work' | 'clock'>;
  /** Of this process: instances know nothing of the numbers of another one. */
  readonly #prefix: string;
  /** The last wish about each host, in the order in which they were read. */
  readonly #wishes = new Map<string, { number: number; wish: HostWish }>();
  #last = 0;
  #newestMs = 0;
  #lookedMs = -Infinity;
  #look: Promise<void> | null = null;

  constructor(core: Pick<Core, 'work' | 'clock'>) {
    this.#core = core;
    this.#prefix = `${core.clock.now().toString(36)}-`;
  }

  /** What the sender of this heartbeat has not heard of; null: nothing. */
  async newFor({ wishes: heard }: Heartbeat, world: Pick<World, 'run' | 'limits'>): Promise<NewWishes | null> {
    const { clock } = this.#core;
    if (clock.monotonic() - this.#lookedMs >= world.limits.heartbeatMs / LOOKS_PER_HEARTBEAT)
      this.#look ??= this.#read(world.run.startedAtMs).finally(() => (this.#look = null));
    await this.#look;
    const after = this.#numberOf(heard);
    const unheard = [...this.#wishes.values()].filter(({ number }) => number > after).slice(0, MOST);
    const last = unheard.at(-1);
    return last === undefined
      ? null
      : { version: `${this.#prefix}${last.number}`, wishes: unheard.map(({ wish }) => wish) };
  }

  #numberOf(heard: string | undefined): number {
    return heard?.startsWith(this.#prefix) ? Number(heard.slice(this.#prefix.length)) || 0 : 0;
  }

  async #read(startedAtMs: number): Promise<void> {
    const { work, clock } = this.#core;
    const lookedMs = clock.monotonic();
    const newestMs = Math.max(startedAtMs, Math.min(this.#newestMs, clock.now()));
    for (const wish of await work.hostWishes(newestMs - OVERLAP_MS)) {
      this.#newestMs = Math.max(this.#newestMs, wish.wishedAtMs);
      const known = this.#wishes.get(wish.host)?.wish;
      const { wishedAtMs, paceMs, denied } = wish;
      if (known?.wishedAtMs === wishedAtMs && known.paceMs === paceMs && known.denied === denied) continue;
      this.#wishes.delete(wish.host);
      this.#wishes.set(wish.host, { number: ++this.#last, wish });
    }
    this.#lookedMs = lookedMs;
  }
}
