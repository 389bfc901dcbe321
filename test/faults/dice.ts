/** What a seed decides. */
import type { Random } from '../../shared/ports/random.ts';

/** Random source of one fault, so that a plan with fewer faults plays the others the same. */
export class Dice {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** An integer, both ends included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.#random.next() * (high - low + 1));
  }

  pick<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.#random.next() * list.length)];
  }

  chance(share: number): boolean {
    return this.#random.next() < share;
  }
}
