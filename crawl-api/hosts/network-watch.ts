/**
 * Whether this machine reaches any host: while none of many answers, their silence says nothing about them, and none of
 * them may be taken for dead.
 */

/** Different hosts in a row without an answer that make a dead network likelier than dead hosts. */
const SILENT_HOSTS = 20;

export class NetworkWatch {
  readonly #silent = new Set<number>();

  get isDown(): boolean {
    return this.#silent.size >= SILENT_HOSTS;
  }

  /** A host has answered, whatever it has said. */
  answered(): void {
    this.#silent.clear();
  }

  /** This host has not. */
  silent(domain: number): void {
    if (!this.isDown) this.#silent.add(domain);
  }
}
