/** What the page of one visit loads from its own site that may still change it: scripts and data. */
import type { CDPSession } from 'playwright';
import { isSameSite } from '../../../shared/domain/same-site.ts';
import type { Clock } from '../../../shared/ports/clock.ts';

const TYPES = new Set(['Script', 'XHR', 'Fetch']);

/** The parts of Chromium's events that are used. */
interface Sent {
  requestId: string;
  request: { url: string };
  type?: string;
}

export class SiteTraffic {
  readonly #clock: Clock;
  #url: string | null = null;
  readonly #underWay = new Set<string>();
  #endedMs = -Infinity;
  /** There has been some in this visit. */
  hasAny = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Network events must be enabled. */
  static watch(cdp: CDPSession, clock: Clock): SiteTraffic {
    const traffic = new SiteTraffic(clock);
    cdp.on('Network.requestWillBeSent', (sent) => traffic.started(sent));
    cdp.on('Network.loadingFinished', ({ requestId }) => traffic.ended(requestId));
    cdp.on('Network.loadingFailed', ({ requestId }) => traffic.ended(requestId));
    return traffic;
  }

  /** Begins a visit of this URL: what an earlier page loads counts no longer. */
  open(url: string): void {
    this.#url = url;
    this.#underWay.clear();
    this.#endedMs = -Infinity;
    this.hasAny = false;
  }

  started({ requestId, request, type = '' }: Sent): void {
    if (this.#url === null || !TYPES.has(type) || !isSameSite(this.#url, request.url)) return;
    this.hasAny = true;
    this.#underWay.add(requestId);
  }

  ended(requestId: string): void {
    if (this.#underWay.delete(requestId)) this.#endedMs = this.#clock.monotonic();
  }

  /** Milliseconds since the last of it ended; 0 while some is under way. */
  quietForMs(): number {
    return this.#underWay.size > 0 ? 0 : this.#clock.monotonic() - this.#endedMs;
  }
}
