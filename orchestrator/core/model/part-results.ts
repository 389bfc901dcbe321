import type { ItemResult, Move } from '../../../shared/wire/part.ts';

/**
 * The results of a part: all at once, or in pieces where that would take too much memory. Pieces are read again when a
 * transaction is tried again.
 */
export type PartResults = readonly ItemResult[] | AsyncIterable<readonly ItemResult[]>;

/** Its pieces, whichever form it has. */
export const piecesOf = (
  results: PartResults,
): Iterable<readonly ItemResult[]> | AsyncIterable<readonly ItemResult[]> =>
  Symbol.asyncIterator in results ? results : [results];

/** The result of a product that goes on at another host. */
export type MovedOn = Extract<ItemResult, { outcome: 'failed' }> & { moved: Move };

export const isMoved = (result: ItemResult): result is MovedOn =>
  result.outcome === 'failed' && result.moved !== undefined;
