/** Visits one product, from its first request to its result. */
import { productUrl } from '../../shared/domain/product.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { Judgement } from '../politeness/judgement.ts';
import { unremarkable } from '../politeness/judgement.ts';
import { toFailure, toItemResult } from './item-result.ts';
import type { Look, LookParts } from './page-look.ts';
import { lookAtProduct } from './product-look.ts';
import type { Item } from './queue-state.ts';

export interface VisitParts extends LookParts {
  clock: Clock;
  productUrl: string;
}

export type VisitEnd =
  /**
   * The judgement decides what happens to the result. `waitMs`: from the request to the first byte of the product's own
   * page, if there was a reply.
   */
  | { kind: 'outcome'; result: ItemResult; judgement: Judgement; waitMs: number | null }
  /** The site asks for a pause of `forMs`; `result` stands if it keeps asking. */
  | { kind: 'wait'; forMs: number; result: ItemResult }
  /** Nothing is known: the product keeps its place. */
  | { kind: 'not-now' };

const GONE = unremarkable('gone');

export async function visitProduct(parts: VisitParts, item: Item, work: AbortSignal): Promise<VisitEnd> {
  const url = productUrl(parts.productUrl, item.id);
  const look = await lookAtProduct(parts, { n: item.n, url, interruptible: true, pages: 'all' }, work);
  return toEnd(parts, item, url, look);
}

function toEnd({ clock, habit }: VisitParts, item: Item, url: string, look: Look): VisitEnd {
  if (look.kind === 'not-now') return look;
  if (look.kind === 'disallowed') {
    const result = toFailure({ item, url, nowMs: clock.now() }, 'robots', `robots.txt does not allow ${look.url}`);
    return { kind: 'outcome', result, judgement: unremarkable('failed'), waitMs: null };
  }
  const { page, judgement } = look;
  if (judgement.kind === 'right' && page.kind === 'page') habit.note(page.extraction.rows ?? []);
  const result = toItemResult({ item, url, nowMs: clock.now() }, page, judgement);
  if (judgement.kind === 'wait' && page.kind === 'failed' && page.retryAfterMs !== null)
    return { kind: 'wait', forMs: page.retryAfterMs, result };
  // A product cut short by a missing page is credible only once a later page is right.
  return { kind: 'outcome', result, judgement: look.doubtful ? GONE : judgement, waitMs: page.reply?.waitMs ?? null };
}
