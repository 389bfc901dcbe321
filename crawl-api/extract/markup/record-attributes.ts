/** Attributes that are already an object. One instance serves many elements. */
import type { Attributes } from './markup-events.ts';

export class RecordAttributes implements Attributes {
  #record: Record<string, string> = {};

  of(record: Record<string, string>): this {
    this.#record = record;
    return this;
  }

  // Own properties only: `[constructor]` would match what every object inherits.
  get(name: string): string | undefined {
    return Object.hasOwn(this.#record, name) ? this.#record[name] : undefined;
  }

  toRecord(): Record<string, string> {
    return this.#record;
  }
}
