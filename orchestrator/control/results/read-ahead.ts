/** Reads the objects to come while the caller works on the one it has: the database and the bucket take turns otherwise. */

/** One hides the way to the bucket and back behind the database; each more is held until its turn comes. */
const AHEAD = 1;
/** Packed, of what is read ahead: as values it is some twenty times as much. */
const AHEAD_BYTES = 2_000_000;

/** What came of one; a failure is the caller's to judge when its turn comes. */
export type ReadOutcome<R> = { value: R } | { error: unknown };

/**
 * Each of `items` in order with what reading it gave. At most `ahead` more than the one in hand are read or held, fewer when
 * they are large. Leaving the loop starts no further read.
 */
export async function* readAhead<T extends { sizeBytes: number }, R>(
  items: readonly T[],
  read: (item: T) => Promise<R>,
  ahead = AHEAD,
): AsyncGenerator<[item: T, outcome: ReadOutcome<R>]> {
  const begun: Promise<ReadOutcome<R>>[] = [];
  let next = 0;
  let bytesAhead = 0;
  const begin = (): void => {
    begun.push(
      read(items[next++]!).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      ),
    );
  };
  for (const item of items) {
    if (begun.length === 0) begin();
    else bytesAhead -= item.sizeBytes;
    while (begun.length <= ahead && next < items.length && bytesAhead + items[next]!.sizeBytes <= AHEAD_BYTES) {
      bytesAhead += items[next]!.sizeBytes;
      begin();
    }
    yield [item, await begun.shift()!];
  }
}
