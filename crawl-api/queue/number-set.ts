/** A set of whole numbers from 0 on, at one bit each. */

const BLOCK_NUMBERS = 65_536;

export class NumberSet {
  readonly #blocks = new Map<number, Uint8Array>();
  size = 0;

  add(n: number): void {
    if (this.has(n)) return;
    const block = Math.floor(n / BLOCK_NUMBERS);
    let bits = this.#blocks.get(block);
    if (bits === undefined) this.#blocks.set(block, (bits = new Uint8Array(BLOCK_NUMBERS / 8)));
    const at = n % BLOCK_NUMBERS;
    bits[at >> 3]! |= 1 << (at & 7);
    this.size++;
  }

  has(n: number): boolean {
    const at = n % BLOCK_NUMBERS;
    const bits = this.#blocks.get(Math.floor(n / BLOCK_NUMBERS));
    return bits !== undefined && (bits[at >> 3]! & (1 << (at & 7))) !== 0;
  }
}
