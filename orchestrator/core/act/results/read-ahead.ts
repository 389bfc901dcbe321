/** Reads the next objects while the caller works on the current one, so that database and bucket work in parallel. */

/** One hides the round trip to the bucket behind the database; each further one only occupies memory until its turn. */
const AHEAD = 1;
/** Maximum packed bytes read ahead: as values they take some twenty times as much. */
const AHEAD_BYTES = 2_000_000;

/** The result of one read; the caller judges a failure when its turn comes. */
export type ReadOutcome<R> = { value: R } | { error: unknown };

/**
 * Each of `items` in order with the result of its read. At most `ahead` items beyond the current one are read or held,
 * fewer when they are large. Leaving the loop starts no further read.
 */
export async function* readAhead<T extends { sizeBytes: number }, R>(
  items: readonly T[],
  read: (item: T) => Promise<R>,
  ahead = AHEAD,
): AsyncGenerator<[item: T, outcome: ReadOutcome<R>]> {
  const begun: Promise<ReadOutcome<R>>[] = [];
  let next = 0;
  let bytesAhead = 0;
  const begin = (item: T): Promise<ReadOutcome<R>> =>
    read(item).then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
  for (const [i, item] of items.entries()) {
    const outcome = begun.shift();
    if (outcome === undefined) next = i + 1;
    else bytesAhead -= item.sizeBytes;
    const awaited = outcome ?? begin(item);
    for (const later of items.slice(next, i + 1 + ahead)) {
      if (bytesAhead + later.sizeBytes > AHEAD_BYTES) break;
      bytesAhead += later.sizeBytes;
      begun.push(begin(later));
      next++;
    }
    yield [item, await awaited];
  }
}
