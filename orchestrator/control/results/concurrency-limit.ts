/** Runs work concurrently up to a limit. The first failure is thrown once all running work has ended. */
export class ConcurrencyLimit {
  readonly #most: number;
  readonly #busy = new Set<Promise<void>>();
  #failure: { error: unknown } | null = null;

  constructor(most: number) {
    this.#most = most;
  }

  /** Starts the work as soon as there is room, and resolves then. Throws the failure of earlier work. */
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
