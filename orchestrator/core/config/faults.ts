/** Faults of a mapping, each with its path in the user's file, so that the caller can add the line. */
import type { z } from 'zod';
import { closest, distance } from 'fastest-levenshtein';

export type Path = readonly (string | number)[];

export interface MappingFault {
  path: Path;
  message: string;
}

/** Collects faults; `report` takes the path from the top of the mapping's file. */
export class FaultList {
  readonly all: MappingFault[] = [];
  /** Paths that find nothing on any page. A run is not refused for them. */
  readonly misspelt: MappingFault[] = [];

  readonly report = (path: Path, message: string): void => {
    // A price becomes two fields, and a fault of their selector would appear twice.
    const isKnown = this.all.some((f) => f.message === message && f.path.join('\0') === path.join('\0'));
    if (!isKnown) this.all.push({ path, message });
  };

  /** The value in the schema's shape, or null after reporting all its faults. */
  read<T>(schema: z.ZodType<T>, value: unknown, path: Path): T | null {
    const parsed = schema.safeParse(value, { error: plainIssue });
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) this.#reportIssue(issue, path, value, knownKeys(schema));
    return null;
  }

  #reportIssue(issue: z.core.$ZodIssue, path: Path, value: unknown, known: readonly string[]): void {
    const at = [...path, ...issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))];
    if (issue.code === 'unrecognized_keys') {
      const keys = issue.path.length === 0 ? known : [];
      for (const key of issue.keys) this.report([...at, key], unknownKey(key, keys));
    } else {
      const isMissing = issue.code !== 'custom' && valueAt(value, issue.path) === undefined;
      this.report(at, isMissing ? 'missing' : issue.message);
    }
  }
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== 'object' || current === null) return undefined;
    current = (current as Record<PropertyKey, unknown>)[step];
  }
  return current;
}

function knownKeys(schema: z.ZodType): string[] {
  const shape = (schema as { shape?: Record<string, unknown> }).shape;
  return shape ? Object.keys(shape) : [];
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of keys and values',
  record: 'a mapping of keys and values',
};

/** The error map for `safeParse`: a message set in the schema takes precedence. Undefined: zod's own text. */
export const plainIssue: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'missing' : `must be ${TYPES[issue.expected] ?? issue.expected}`;
    case 'too_small':
    case 'too_big': {
      const limit = issue.code === 'too_small' ? issue.minimum : issue.maximum;
      const bound = issue.code === 'too_small' ? 'at least' : 'at most';
      const unit = issue.origin === 'string' ? ' characters' : issue.origin === 'array' ? ' entries' : '';
      return `must be ${bound} ${limit}${unit}`;
    }
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map(String).join(', ')}`;
    default:
      return undefined;
  }
};

/** The message for an unknown key: the known key that was probably meant, else the list of the known ones. */
export function unknownKey(key: string, known: readonly string[]): string {
  const near = known.length === 0 ? null : closest(key, known);
  if (near !== null && distance(key, near) <= Math.max(1, Math.floor(key.length / 3)))
    return `unknown key; did you mean ${near}?`;
  return known.length === 0 ? 'unknown key' : `unknown key; known are ${known.join(', ')}`;
}
