/**
 * Whether many hosts refuse this address, where each may have its own reason: then it is the address that they refuse,
 * or who serves many of them. Only hosts count that were right before.
 */

/** The hosts that were asked last, and the share of them that is enough. */
const LAST = 30;
const ENOUGH = LAST / 3;

export class AddressDoubt {
  /** Whether each refuses, the one that was asked last at the end. */
  readonly #last = new Map<number, boolean>();
  #refusing = 0;

  get isDoubted(): boolean {
    return this.#refusing >= ENOUGH;
  }

  /** A page of the host was right. */
  right(domain: number): void {
    this.#note(domain, false);
  }

  /** The host rests for a refusal, or is given up for it. */
  refused(domain: number): void {
    if (this.#last.has(domain)) this.#note(domain, true);
  }

  #note(domain: number, isRefusing: boolean): void {
    this.#forget(domain);
    this.#last.set(domain, isRefusing);
    if (isRefusing) this.#refusing++;
    const [oldest] = this.#last.keys();
    if (this.#last.size > LAST && oldest !== undefined) this.#forget(oldest);
  }

  #forget(domain: number): void {
    if (this.#last.get(domain) === true) this.#refusing--;
    this.#last.delete(domain);
  }
}
