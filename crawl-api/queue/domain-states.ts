/** What the journal says about each domain of the shop, or each of many hosts, as this address sees it. */
import type { FailureReason } from '../../shared/domain/outcome.ts';
import { deniedHost } from '../../shared/domain/own-url.ts';
import { REFUSALS } from '../../shared/wire/callbacks.ts';
import type { HostNote } from './records.ts';

interface DomainState {
  /** Wall clock; null before the first request. */
  lastStartMs: number | null;
  /** Wall clock; no request before it. */
  pausedUntilMs: number;
  /** When a page was last right; wall clock. */
  okAtMs: number | null;
  /** Bans of this address there. */
  bans: number;
  /** Products stored since the last of them, or since the first request: the pace after a ban depends on them. */
  rightPages: number;
  /** Id of the product stored last; before the first one, of a held product whose own page was right or unchanged. */
  lastStored: string | null;
  /** Of many hosts: it has refused a page, and no page was right since. */
  refused: boolean;
  /** Of many hosts: why it is asked nothing more; null: it is. */
  givenUp: { reason: FailureReason; detail: string; isDenied?: true } | null;
  /** Of many hosts: its longest Crawl-delay that is known; 0 without one. */
  delayMs: number;
  /** Of many hosts: the gap that an operator asks for; 0 without one. */
  paceMs: number;
}

const UNKNOWN: Readonly<DomainState> = {
  lastStartMs: null,
  pausedUntilMs: 0,
  okAtMs: null,
  bans: 0,
  rightPages: 0,
  lastStored: null,
  refused: false,
  givenUp: null,
  delayMs: 0,
  paceMs: 0,
};

export class DomainStates {
  readonly #states = new Map<number, DomainState>();
  /** Of many hosts: those of which the main server must know more before they are asked again. */
  readonly news = new Set<number>();
  /** Of many hosts: those that an operator has denied since the crawl last looked. */
  readonly denied = new Set<number>();
  /** The shortest time between two requests to the same domain. */
  minGapMs: number | null = null;

  /** Read it anew after a record: of a domain that was unknown it stays as it was. */
  at(domain: number): Readonly<DomainState> {
    return this.#states.get(domain) ?? UNKNOWN;
  }

  #of(domain: number): DomainState {
    let of = this.#states.get(domain);
    if (of === undefined) this.#states.set(domain, (of = { ...UNKNOWN }));
    return of;
  }

  /** When a page was last right, of the domain where that is longest ago; null while one has had none. */
  get okAtMs(): number | null {
    let oldestMs = Infinity;
    for (const { lastStartMs, okAtMs } of this.#states.values()) {
      if (okAtMs !== null) oldestMs = Math.min(oldestMs, okAtMs);
      else if (lastStartMs !== null) return null;
    }
    return oldestMs === Infinity ? null : oldestMs;
  }

  /** When a page was last right of any domain; null before the first. */
  get lastOkAtMs(): number | null {
    let lastMs: number | null = null;
    for (const { okAtMs } of this.#states.values()) if (okAtMs !== null) lastMs = Math.max(lastMs ?? 0, okAtMs);
    return lastMs;
  }

  /** The last time that any domain asked this address to wait for. */
  get pausedUntilMs(): number {
    let lastMs = 0;
    for (const { pausedUntilMs } of this.#states.values()) lastMs = Math.max(lastMs, pausedUntilMs);
    return lastMs;
  }

  /** When the first of these domains may be asked that all rest; 0 where one does not. */
  restUntilMs(domains: Iterable<number>): number {
    let firstMs = Infinity;
    for (const domain of domains) {
      firstMs = Math.min(firstMs, this.#states.get(domain)?.pausedUntilMs ?? 0);
      if (firstMs === 0) return 0;
    }
    return firstMs === Infinity ? 0 : firstMs;
  }

  /** How often a host has refused this address, or the one that asked it before, as heartbeats and notes say it. */
  refusalsAt(domain: number): number {
    const { refused, bans, givenUp } = this.at(domain);
    if (givenUp?.reason === 'banned') return REFUSALS.givenUp;
    if (bans > 0) return REFUSALS.rested;
    return refused ? REFUSALS.once : 0;
  }

  /** A request was sent. */
  noteStart(domain: number, atMs: number): void {
    const of = this.#of(domain);
    if (of.lastStartMs !== null) this.minGapMs = Math.min(this.minGapMs ?? Infinity, atMs - of.lastStartMs);
    of.lastStartMs = atMs;
  }

  /** A page was right. */
  noteRight(domain: number, atMs: number): void {
    const of = this.#of(domain);
    of.okAtMs = Math.max(of.okAtMs ?? 0, atMs);
  }

  noteStored(domain: number, id: string, atMs: number): void {
    const of = this.#of(domain);
    of.lastStored = id;
    of.rightPages++;
    this.trust(domain);
    this.noteRight(domain, atMs);
  }

  /** The page of a product was right or unchanged, but its result waits for a proof. */
  noteHeld(domain: number, id: string): void {
    this.#of(domain).lastStored ??= id;
  }

  /** What it has refused was only that. */
  trust(domain: number): void {
    const of = this.#of(domain);
    if (of.refused && of.bans === 0) this.news.add(domain);
    of.refused = false;
  }

  notePause(domain: number, untilMs: number): void {
    const of = this.#of(domain);
    of.pausedUntilMs = Math.max(of.pausedUntilMs, untilMs);
  }

  noteBan(domain: number): void {
    const of = this.#of(domain);
    of.bans++;
    of.rightPages = 0;
  }

  /** A host has refused a page. */
  noteRefusal(domain: number): void {
    const of = this.#of(domain);
    of.refused = true;
    if (of.bans === 0) this.news.add(domain);
  }

  /** A host refuses this address: it rests until then. */
  noteRest(domain: number, untilMs: number): void {
    this.notePause(domain, untilMs);
    this.noteBan(domain);
    this.#of(domain).refused = false;
    this.news.add(domain);
  }

  /** A host is asked nothing more in this run. */
  giveUp(domain: number, why: { reason: FailureReason; detail: string }): void {
    this.#of(domain).givenUp = why;
    if (why.reason === 'banned') this.news.add(domain);
  }

  /**
   * The robots.txt of a host asks for this Crawl-delay.
   *
   * @param knownMs up to this one the main server need not know of it
   */
  noteDelay(domain: number, delayMs: number, knownMs: number): void {
    const of = this.#of(domain);
    if (delayMs <= of.delayMs) return;
    of.delayMs = delayMs;
    if (delayMs > knownMs) this.news.add(domain);
  }

  /** What the main server knows of a host. */
  noteHost(domain: number, { host, delayMs = 0, paceMs = 0, untilMs = 0, refusals = 0, denied }: HostNote): void {
    const of = this.#of(domain);
    of.delayMs = Math.max(of.delayMs, delayMs);
    of.pausedUntilMs = Math.max(of.pausedUntilMs, untilMs);
    // What is known of a host that was asked here is newer.
    if (refusals === REFUSALS.once && of.lastStartMs === null) of.refused = true;
    if (refusals >= REFUSALS.rested && of.bans === 0) {
      of.bans = 1;
      of.rightPages = 0;
    }
    if (refusals >= REFUSALS.givenUp)
      of.givenUp ??= { reason: 'banned', detail: 'the host has refused the instance that asked it before' };
    // What an operator asks is in each note: it may be less than before, or nothing any more.
    of.paceMs = paceMs;
    if (denied) {
      of.givenUp ??= { reason: 'redirect', detail: deniedHost(host), isDenied: true };
      this.denied.add(domain);
    } else if (of.givenUp?.isDenied === true) of.givenUp = null;
  }
}
