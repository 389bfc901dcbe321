/** The message for a faulty value, in the user's words: the schema library does not show through. */
import { closest, distance } from 'fastest-levenshtein';
import type { z } from 'zod';

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
