/**
 * Whether an instance has room for an offered chunk: the rule of the crawl API, which the modelled instance follows,
 * too.
 */
import { domainPaces, meanSpacingMs, type ProductUrl } from './domains.ts';
import { paceMarginMs } from './pacing.ts';
import type { RobotsPolicy } from './robots-matcher.ts';

export const REFUSALS = ['share', 'deadline', 'sealed', 'draining', 'disk', 'banned'] as const;

/** `room`: how many products it would still accept. */
export interface Refusal {
  refused: (typeof REFUSALS)[number];
  room: number;
}

/** What an instance knows when an offer comes. */
export interface Holder {
  isDraining: boolean;
  isSealed: boolean;
  /** The site bans its address, or seems to. */
  hasIncident: boolean;
  /** Products held, whatever their outcome. */
  held: number;
  /** How many of those have no outcome. */
  open: number;
  /** The most products by order of the main server; null: the share in the offer. */
  maxProducts: number | null;
  /** The time until the deadline. */
  leftMs: number;
  productUrl: ProductUrl;
  robots: RobotsPolicy | null;
  /** The interval as ordered, whatever the Crawl-delay of a domain. */
  intervalMs: number;
}

/**
 * Why an instance refuses a chunk; null for one that fits: within the share, and within the time until the deadline at
 * the pace.
 *
 * @param size products in the chunk
 * @param share maximum products per slot, as the offer says
 */
export function refusalOf(size: number, share: number, holder: Holder): Refusal | null {
  const { held, open, maxProducts, leftMs, productUrl, robots, intervalMs } = holder;
  if (holder.isDraining) return { refused: 'draining', room: 0 };
  if (holder.isSealed) return { refused: 'sealed', room: 0 };
  if (holder.hasIncident) return { refused: 'banned', room: 0 };
  const due = Math.min(share, maxProducts ?? Infinity) - held;
  if (size > due) return { refused: 'share', room: Math.max(0, due) };
  const paceMs = meanSpacingMs(domainPaces(productUrl, robots), intervalMs, (ms) => ms + paceMarginMs(ms));
  const room = Math.floor(leftMs / paceMs) - open;
  return size > room ? { refused: 'deadline', room: Math.max(0, room) } : null;
}
