/** A binary heap by time: what is due first comes first, of the same time what was added first. */

/** Something that is due at a time. `order`: its place among those of the same time. */
export interface Due {
  readonly atMs: number;
  readonly order: number;
}

export class TimeHeap<T extends Due> {
  #entries: T[] = [];

  /** What is due first; undefined when there is nothing. */
  get first(): T | undefined {
    return this.#entries[0];
  }

  clear(): void {
    this.#entries = [];
  }

  push(entry: T): void {
    const heap = this.#entries;
    let i = heap.length;
    heap.push(entry);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  /** Takes what is due first. */
  pop(): T | undefined {
    const heap = this.#entries;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || last === undefined) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}

const isBefore = (a: Due, b: Due): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
