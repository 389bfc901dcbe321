/** Attributes that are an object already. One serves for many elements. */
import type { Attributes } from './markup-events.ts';

export class RecordAttributes implements Attributes {
  #record: Record<string, string> = {};

  of(record: Record<string, string>): this {
    this.#record = record;
    return this;
  }

  // Own ones only: `[constructor]` would find what every object inherits.
  get(name: string): string | undefined {
    return Object.hasOwn(this.#record, name) ? this.#record[name] : undefined;
  }

  toRecord(): Record<string, string> {
    return this.#record;
  }
}
