/**
 * The crawl of an instance: one loop for each domain of the shop, each with a pace, an address watch and canary pages
 * of its own. They share the queue and the places for pages, one by default. An incident at one domain stops all of
 * them.
 */
import { templatesOf } from '../../shared/domain/domains.ts';
import { openJar } from '../../shared/adapters/http/cookie-jar.ts';
import { SignalFlag } from '../process/signal-flag.ts';
import { AddressWatch } from '../politeness/address-watch.ts';
import { Pacer } from '../politeness/pacer.ts';
import { Places } from '../politeness/places.ts';
import { CanaryPages } from './canary-pages.ts';
import type { CrawlEnd } from './crawl-ending.ts';
import { CrawlLoop, type CrawlLoopParts } from './crawl-loop.ts';
import { siteDomain } from './domain-policy.ts';
import { IncidentTracker } from './incident-tracker.ts';

type OfOneDomain = 'domain' | 'policy' | 'pacer' | 'watch' | 'canaryPages' | 'cookies' | 'changed';

export interface CrawlParts extends Omit<CrawlLoopParts, OfOneDomain | 'places' | 'incidents'> {
  /** Called when an incident has begun, changed or ended. */
  onIncident: () => void;
}

/** The crawl of an instance, at one site or at many hosts. */
export interface Crawl {
  /** What stops the address as a whole. */
  readonly incidents: Pick<IncidentTracker, 'describe' | 'decide'>;
  /** For the user to see; null when there is nothing. */
  readonly problem: string | null;
  /** The queue or the orders have changed. */
  wake(): void;
  /** Resolves when no further request will be sent; `stop` ends it immediately. */
  run(stop: AbortSignal): Promise<CrawlEnd>;
}

export class SiteCrawl implements Crawl {
  readonly incidents: IncidentTracker;
  readonly #domains: readonly Pick<CrawlLoopParts, OfOneDomain>[];
  readonly #loops: readonly CrawlLoop[];

  constructor({ onIncident, ...parts }: CrawlParts) {
    const { queue, clock, site } = parts;
    const { productUrl, canaries, maxRequests, pagesAtOnce = 1 } = site;
    const isProbe = maxRequests !== undefined;
    const { coolDownMs } = site.ban;
    const watches = templatesOf(productUrl).map(() => new AddressWatch());
    this.#domains = templatesOf(productUrl).map((_, domain, { length }) => ({
      domain,
      policy: siteDomain({ ...parts, domain, isOneOfMany: length > 1 }),
      pacer: new Pacer(clock, () => queue.intervalAt(domain), queue.state.domains.at(domain).lastStartMs !== null),
      watch: watches[domain]!,
      canaryPages: new CanaryPages(canaries, productUrl, domain, queue.state),
      cookies: openJar(site, clock),
      changed: new SignalFlag(),
    }));
    const onChange = (): void => {
      this.wake();
      onIncident();
    };
    const onBanOver = (): void => this.#domains.forEach(({ cookies }) => cookies?.clear());
    this.incidents = new IncidentTracker({ queue, watches, clock, coolDownMs, isProbe, onChange, onBanOver });
    const shared = { ...parts, places: new Places(pagesAtOnce), incidents: this.incidents };
    this.#loops = this.#domains.map((domain) => new CrawlLoop({ ...shared, ...domain }));
  }

  /** Canaries that differed while the site served the address; null when there are none. */
  get problem(): string | null {
    const problems = this.#domains.flatMap(({ canaryPages }) => canaryPages.problem ?? []);
    return problems.length === 0 ? null : [...new Set(problems)].join('; ');
  }

  wake(): void {
    for (const { changed } of this.#domains) changed.raise();
  }

  async run(stop: AbortSignal): Promise<CrawlEnd> {
    // The last product of one domain may end the wait of all others.
    const ends = await Promise.all(this.#loops.map((loop) => loop.run(stop).finally(() => this.wake())));
    return ends[0]!;
  }
}
