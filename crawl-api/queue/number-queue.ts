/** A FIFO queue of product numbers; taking the first is cheap at any length. */

/** Numbers taken before their memory is freed. */
const BLOCK = 1_024;

export class NumberQueue {
  #numbers: number[] = [];
  #head = 0;

  get size(): number {
    return this.#numbers.length - this.#head;
  }

  get first(): number | undefined {
    return this.#numbers[this.#head];
  }

  push(n: number): void {
    this.#numbers.push(n);
  }

  remove(n: number): void {
    if (this.first === n) {
      this.#head++;
      if (this.#head === BLOCK) {
        this.#numbers.splice(0, BLOCK);
        this.#head = 0;
      }
      return;
    }
    const at = this.#numbers.indexOf(n, this.#head);
    if (at !== -1) this.#numbers.splice(at, 1);
  }

  clear(): void {
    this.#numbers = [];
    this.#head = 0;
  }
}
