/**
 * Whether this machine reaches any host: while none of many answers, their silence says nothing about them, and none of
 * them may be taken for dead.
 */

/** What speaks for a dead network, where no host has answered since: so much is enough. */
const ENOUGH = 20;
/** A host that has answered before, and is silent now. */
const WAS_ALIVE = 4;
/** A host that was never heard. */
const WAS_NEVER_HEARD = 1;

export class NetworkWatch {
  readonly #isLast: () => boolean;
  /** The hosts that have fallen silent since any host answered. */
  readonly #silent = new Set<number>();
  #evidence = 0;
  /** How much of it is of hosts that have answered before. */
  #certain = 0;

  /** @param isLast no host is left that was never asked, and none will come: no further one can be lost */
  constructor(isLast: () => boolean) {
    this.#isLast = isLast;
  }

  /** Of the last hosts of a night those that were never heard may well be dead, all of them. */
  get isDown(): boolean {
    return this.#evidence >= ENOUGH && (this.#certain >= ENOUGH || !this.#isLast());
  }

  /** A host has answered, whatever it has said. */
  answered(): void {
    this.#silent.clear();
    this.#evidence = 0;
    this.#certain = 0;
  }

  /**
   * This host has not answered, for the first time in a row: one that was silent while others answered says nothing
   * new. At the end of a night dead hosts are all that is left.
   */
  silent(domain: number, wasAlive: boolean): void {
    if (this.#silent.has(domain)) return;
    this.#silent.add(domain);
    this.#evidence += wasAlive ? WAS_ALIVE : WAS_NEVER_HEARD;
    if (wasAlive) this.#certain += WAS_ALIVE;
  }
}
