/** Results to be uploaded: numbered lines, cut into parts, and dropped when their part is in the bucket. */
import type { PartRef } from '../../shared/wire/callbacks.ts';
import type { ItemResult } from '../../shared/wire/part.ts';

export interface Cut {
  seq: number;
  from: number;
  to: number;
}

export class ResultLines {
  /** Lines of results that are not in the bucket; the first one has number `#from`. */
  #lines: string[] = [];
  #from = 0;
  #cutTo = 0;
  /** Characters in results that no cut covers yet. */
  uncutChars = 0;
  /** Cuts that are not in the bucket yet, in order. */
  readonly cuts: Cut[] = [];
  /** The ends of cuts that the main server has not acknowledged, in order. */
  readonly #ends: Pick<Cut, 'seq' | 'to'>[] = [];

  add(result: ItemResult): void {
    const line = JSON.stringify(result);
    this.#lines.push(line);
    this.uncutChars += line.length;
  }

  cut(cut: Cut): void {
    for (const line of this.linesOf(cut)) this.uncutChars -= line.length;
    this.cuts.push(cut);
    this.#cutTo = cut.to;
    this.#ends.push({ seq: cut.seq, to: cut.to });
  }

  /** The main server has every part up to this one. Returns how many results those parts have, from the first on. */
  acknowledge(seq: number): number {
    let results = 0;
    for (let first = this.#ends[0]; first !== undefined && first.seq <= seq; first = this.#ends[0]) {
      results = first.to;
      this.#ends.shift();
    }
    return results;
  }

  store(part: PartRef): void {
    const cut = this.cuts.find(({ seq }) => seq === part.seq);
    if (cut === undefined) return;
    this.cuts.splice(this.cuts.indexOf(cut), 1);
    // Parts are uploaded in order, so the bucket always holds a prefix.
    this.#lines.splice(0, cut.to - this.#from);
    this.#from = cut.to;
  }

  /** Results without a cut: their numbers are [from, to). */
  uncut(): { from: number; to: number } {
    return { from: this.#cutTo, to: this.#from + this.#lines.length };
  }

  /** End of a cut of uncut results: at most number `to`, at most `maxChars`, and at least one result. */
  lastWithin(to: number, maxChars: number): number {
    let chars = 0;
    for (let i = this.#cutTo; i < to; i++) {
      chars += this.#lines[i - this.#from]!.length;
      if (chars > maxChars && i > this.#cutTo) return i;
    }
    return to;
  }

  /** The lines of results [from, to), none of which is in the bucket yet. */
  linesOf(cut: { from: number; to: number }): string[] {
    return this.#lines.slice(cut.from - this.#from, cut.to - this.#from);
  }
}
