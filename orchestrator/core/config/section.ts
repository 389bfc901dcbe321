/** Top-level keys of fleet.yaml that belong to a feature: the configuration has them only where the feature is there. */
import type { z } from 'zod';
import type { Config } from './load-config.ts';
import type { MappingFault } from './faults.ts';
import type { ConfigValues } from './schema.ts';

/** Keys that earlier versions read elsewhere, and what they mean in a section. */
export interface OldKeys<T> {
  /** As variables of the environment set them; neither documented nor in the JSON Schema. */
  schema: z.ZodObject;
  /** Takes them out of a configuration as it was read; null where it has none. */
  take: (tree: Record<string, unknown>) => {
    /** Of the first of them. */
    path: readonly string[];
    /** What the user should write instead. */
    note: string;
    issues: readonly z.core.$ZodIssue[];
    /** The section's value with what they mean. */
    addTo: (value: T) => T;
  } | null;
}

export class Section<T> {
  readonly key: string;
  /** Described; gives a value for `undefined`, where the file does not have the key. */
  readonly schema: z.ZodType<T>;
  readonly #findFaults: (value: T, values: ConfigValues) => MappingFault[];
  readonly old: OldKeys<T> | null;

  /** `findFaults`: those that the rest of the configuration shows. */
  constructor(
    key: string,
    schema: z.ZodType<T>,
    { findFaults = () => [], old = null }: { findFaults?: (value: T, values: ConfigValues) => MappingFault[]; old?: OldKeys<T> | null } = {},
  ) {
    this.key = key;
    this.schema = schema;
    this.#findFaults = findFaults;
    this.old = old;
  }

  /** Its value in a configuration; the default in one that was not read from a file. */
  of({ values, sections }: Pick<Config, 'sections'>): T {
    return sections?.has(this.key) ? (sections.get(this.key) as T) : this.schema.parse(undefined);
  }
}
