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
  /** The hosts that have fallen silent since any host answered. */
  readonly #silent = new Set<number>();
  #evidence = 0;

  get isDown(): boolean {
    return this.#evidence >= ENOUGH;
  }

  /** A host has answered, whatever it has said. */
  answered(): void {
    this.#silent.clear();
    this.#evidence = 0;
  }

  /**
   * This host has not answered, for the first time in a row: one that was silent while others answered says nothing
   * new. At the end of a night dead hosts are all that is left.
   */
  silent(domain: number, wasAlive: boolean): void {
    if (this.isDown || this.#silent.has(domain)) return;
    this.#silent.add(domain);
    this.#evidence += wasAlive ? WAS_ALIVE : WAS_NEVER_HEARD;
  }
}
