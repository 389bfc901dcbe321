/**
 * Top-level keys of fleet.yaml that belong to a feature: the configuration has them only where the feature is there.
 */
import type { z } from 'zod';
import type { MappingFault } from './faults.ts';
import { configSchema, type ConfigValues } from './schema.ts';

export interface SectionValues {
  /** The values of the sections by key, read by `Section.of`. Omitted: their defaults. */
  sections?: ReadonlyMap<string, unknown>;
}

interface SectionOptions<T> {
  /** Faults that show only beside the rest of the configuration. */
  findFaults?(value: T, values: ConfigValues): MappingFault[];
  /** Keys that earlier versions had elsewhere for it. */
  old?: OldKeys<T>;
}

export interface OldKeys<T> {
  /** The keys as variables of the environment set them; neither documented nor in the JSON Schema. */
  schema: z.ZodObject;
  /** Takes them out of a configuration as it was read; null where it has none. */
  take(tree: Record<string, unknown>): TakenKeys<T> | null;
}

interface TakenKeys<T> {
  /** The path of the first of them. */
  path: readonly string[];
  /** What the user should write instead. */
  note: string;
  issues: readonly z.core.$ZodIssue[];
  /** The section's value with what they mean. */
  addTo(value: T): T;
}

export class Section<T> {
  readonly key: string;
  /** The schema with its description; gives a value for `undefined`, where the file does not have the key. */
  readonly schema: z.ZodType<T>;
  readonly options: SectionOptions<T>;

  constructor(key: string, schema: z.ZodType<T>, options: SectionOptions<T> = {}) {
    this.key = key;
    this.schema = schema;
    this.options = options;
  }

  /** Its value in a configuration; the default in one that no file gave. */
  of({ sections }: SectionValues): T {
    return sections?.has(this.key) ? (sections.get(this.key) as T) : this.schema.parse(undefined);
  }
}

/** The schema of a whole file: with the sections of the features that are there. */
export const schemaWith = (sections: readonly Section<unknown>[]): typeof configSchema =>
  configSchema.extend(Object.fromEntries(sections.map(({ key, schema }) => [key, schema]))) as typeof configSchema;
