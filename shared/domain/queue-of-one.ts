/** Runs work one piece at a time. */

/** Each piece of work starts when the one before it has ended, well or badly; the result is its own. */
export function createQueueOfOne(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
}
