/** Events in order of time: a binary heap, because a simulated day has millions of them. */

/** Takes events out by their time; those of the same time in the order in which they came. */
export class EventQueue<T> {
  readonly #times: number[] = [];
  readonly #order: number[] = [];
  readonly #events: T[] = [];
  #added = 0;

  get size(): number {
    return this.#times.length;
  }

  /** Time of the next event; Infinity when there is none. */
  get nextMs(): number {
    return this.#times.length > 0 ? this.#times[0]! : Infinity;
  }

  add(atMs: number, event: T): void {
    const order = this.#added++;
    let place = this.#times.length;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (this.#times[above]! <= atMs) break;
      this.#copy(above, place);
      place = above;
    }
    this.#put(place, atMs, order, event);
  }

  /** The next event. Throws when there is none. */
  take(): T {
    const event = this.#events[0];
    if (event === undefined) throw new Error('no event is left');
    const atMs = this.#times.pop()!;
    const order = this.#order.pop()!;
    const last = this.#events.pop()!;
    const size = this.#times.length;
    if (size > 0) this.#sink(atMs, order, last, size);
    return event;
  }

  #sink(atMs: number, order: number, event: T, size: number): void {
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= size) break;
      if (below + 1 < size && this.#isBefore(below + 1, this.#times[below]!, this.#order[below]!)) below++;
      if (!this.#isBefore(below, atMs, order)) break;
      this.#copy(below, place);
      place = below;
    }
    this.#put(place, atMs, order, event);
  }

  #isBefore(place: number, atMs: number, order: number): boolean {
    const time = this.#times[place]!;
    return time < atMs || (time === atMs && this.#order[place]! < order);
  }

  #copy(from: number, to: number): void {
    this.#put(to, this.#times[from]!, this.#order[from]!, this.#events[from]!);
  }

  #put(place: number, atMs: number, order: number, event: T): void {
    this.#times[place] = atMs;
    this.#order[place] = order;
    this.#events[place] = event;
  }
}
