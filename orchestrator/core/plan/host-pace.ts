/** What a host of the site asks of a run, and what it gets at the most since it asked for a slower pace. Pure. */
import { type ProductUrl, templatesOf } from '../../../shared/domain/domains.ts';
import { siteHostOf } from '../../../shared/domain/same-site.ts';

/** The pace of one domain of the shop; a run has them in the order of `templatesOf`. */
export interface HostPace {
  /** The host with its port, unless that is the scheme's own. */
  host: string;
  /** The interval there, in milliseconds: as planned, or the Crawl-delay that came since. */
  intervalMs: number;
  /** The cap; omitted while the site has not asked for a slower pace in mid-run. */
  cap?: HostCap;
}

/** The most that a host gets, whatever the fleet does: this number of addresses at that pace. */
export interface HostCap {
  /** Those at work when the site asked. */
  addresses: number;
  /** The pace it asked for: milliseconds between two requests of one address. */
  delayMs: number;
  /** The interval before. */
  beforeMs: number;
  atMs: number;
  /** The run that was asked. */
  runId: string;
  /** The site does not ask for it any more: this run keeps the cap, and the plan after it does not. */
  isLast?: true;
}

/**
 * What `orchestrator pace` asks of a run until it is reset: docs/decisions/0045-operator-pace.md. Times are
 * milliseconds.
 */
export interface OperatorPace {
  atMs: number;
  /** Per address, as `site.interval`; null: as configured. */
  intervalMs: number | null;
  /** No request before it; null without a pause. */
  pausedUntilMs: number | null;
  /** Those at work when it was first asked for: at this interval they are the most that a host gets. Null: reset. */
  addresses: number | null;
  /** The plan after this run keeps it, too. */
  isForNextPlan: boolean;
  runId: string;
}

/** What a host, or the operator, asked of the last run that crawled it. */
export interface AskedPace extends HostPace {
  /** Omitted where the next plan is not to keep it. */
  operatorPace?: OperatorPace;
  /** It banned an address of a run lately. */
  bannedLately?: true;
}

/** Names the hosts of a shop, in the order of its domains. */
export const hostsOf = (productUrl: ProductUrl): string[] =>
  templatesOf(productUrl).map((template) => {
    const url = new URL(template);
    return siteHostOf(url) + (url.port === '' ? '' : `:${url.port}`);
  });

/** `1 address was` or `22 addresses were`, with these verbs. */
export const addressesInWords = (count: number, one: string, many: string): string =>
  count === 1 ? `1 address ${one}` : `${count} addresses ${many}`;

/** Requests per second of all addresses together. */
export const rateOf = ({ addresses, delayMs }: Pick<HostCap, 'addresses' | 'delayMs'>): number =>
  (addresses * 1_000) / delayMs;

/**
 * How many addresses keep within a rate at this interval. A small tolerance: 0.3/s at 10 s is three addresses, not
 * 2.9999.
 */
export const addressesWithin = (perSecond: number, intervalMs: number): number =>
  Math.floor((perSecond * intervalMs) / 1_000 + 1e-9);
