/** Pieces of work side by side, never more than a few at once; the first failure ends it when all that had begun have ended. */
export class ConcurrencyLimit {
  readonly #most: number;
  readonly #busy = new Set<Promise<void>>();
  #failure: { error: unknown } | null = null;

  constructor(most: number) {
    this.#most = most;
  }

  /** Begins the work as soon as there is room, and resolves then. Throws what an earlier piece has thrown. */
  async enter(work: () => Promise<void>): Promise<void> {
    while (this.#busy.size >= this.#most) await Promise.race(this.#busy);
    await this.#throwFailure();
    const done: Promise<void> = work()
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#busy.delete(done));
    this.#busy.add(done);
  }

  /** Resolves when all work has ended. Throws the first failure. */
  async end(): Promise<void> {
    await Promise.all(this.#busy);
    await this.#throwFailure();
  }

  async #throwFailure(): Promise<void> {
    if (this.#failure === null) return;
    await Promise.all(this.#busy);
    throw this.#failure.error;
  }
}

/** A queue of one: each piece of work starts when the one before it has ended, well or badly. */

export function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
}
