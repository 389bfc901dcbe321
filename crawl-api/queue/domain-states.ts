/** What the journal says about each domain of the shop, or each of many hosts, as this address sees it. */
import type { FailureReason } from '../../shared/domain/outcome.ts';
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

export class DomainStates {
  readonly #states = new Map<number, DomainState>();
  /** Of many hosts: those of which the main server must know more before they are asked again. */
  readonly news = new Set<number>();
  /** Of many hosts: those that an operator has denied since the crawl last looked. */
  readonly denied = new Set<number>();

  at(domain: number): DomainState {
    let at = this.#states.get(domain);
    if (at === undefined) {
      at = {
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
      this.#states.set(domain, at);
    }
    return at;
  }

  /** As `at`; undefined for one of which nothing is known. */
  find(domain: number): DomainState | undefined {
    return this.#states.get(domain);
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

  /** What the main server says of a host. */
  noteHost(domain: number, { host, delayMs = 0, paceMs = 0, untilMs = 0, refusals = 0, denied }: HostNote): void {
    const at = this.at(domain);
    this.slowDown(domain, delayMs);
    at.pausedUntilMs = Math.max(at.pausedUntilMs, untilMs);
    // What is known of a host that was asked here is newer.
    if (refusals === REFUSALS.once && at.lastStartMs === null) at.refused = true;
    if (refusals >= REFUSALS.rested && at.bans === 0) {
      at.bans = 1;
      at.rightPages = 0;
    }
    if (refusals >= REFUSALS.givenUp)
      at.givenUp ??= { reason: 'banned', detail: 'the host has refused the instance that asked it before' };
    // What an operator asks is in each note: it may be less than before, or nothing any more.
    at.paceMs = paceMs;
    if (denied) {
      const detail = `${host} is denied (orchestrator hosts deny)`;
      at.givenUp ??= { reason: 'redirect', detail, isDenied: true };
      this.denied.add(domain);
    } else if (at.givenUp?.isDenied === true) at.givenUp = null;
  }

  /**
   * A host wants this Crawl-delay.
   *
   * @param newsFromMs the main server must know of a longer delay; omitted: it knows of it
   */
  slowDown(domain: number, delayMs: number, newsFromMs = Infinity): void {
    const at = this.at(domain);
    if (delayMs <= at.delayMs) return;
    at.delayMs = delayMs;
    if (delayMs > newsFromMs) this.news.add(domain);
  }
}
