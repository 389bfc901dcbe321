/** Conditions on a part's product numbers. They come in chunks, so most form a few runs of consecutive numbers. */
import type { Knex } from 'knex';
import { inPieces } from './rows.ts';

/** Few enough that the optimizer uses the key for each, and that a statement stays short. */
const RANGES = 100;
const LIST = 1_000;
/** For shorter runs, on average, a list is as good. */
const WORTH = 4;

/** Restricts a query over crawlfleet_items to some numbers. */
export type OnNumbers = (query: Knex.QueryBuilder) => void;

/** Conditions that together cover these numbers exactly, one statement each: by ranges where that is shorter, by lists otherwise. @param numbers ascending, each once */
export function onNumbers(numbers: readonly number[]): OnNumbers[] {
  const runs = runsOf(numbers);
  if (runs.length * WORTH > numbers.length)
    return inPieces(numbers, LIST).map((piece) => (query) => void query.whereIn('n', piece));
  return inPieces(runs, RANGES).map(
    (piece) => (query) =>
      void query.where((any) => {
        for (const run of piece) void any.orWhereBetween('n', run);
      }),
  );
}

/** First and last of each run of consecutive numbers. */
export function runsOf(numbers: readonly number[]): [first: number, last: number][] {
  const runs: [number, number][] = [];
  for (const n of numbers) {
    const run = runs.at(-1);
    if (run && run[1] + 1 === n) run[1] = n;
    else runs.push([n, n]);
  }
  return runs;
}
