/** What a fault of a value says, in the words of a user: no schema library shows through. */
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

/** The error map for `safeParse`: a message that a schema gives itself wins over it. Undefined: zod's own words. */
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

/** The text for a key that does not exist: the known key that was probably meant, else the list of the known ones. */
export function unknownKey(key: string, known: readonly string[]): string {
  const near = known.length === 0 ? null : closest(key, known);
  if (near !== null && distance(key, near) <= Math.max(1, Math.floor(key.length / 3)))
    return `unknown key; did you mean ${near}?`;
  return known.length === 0 ? 'unknown key' : `unknown key; known are ${known.join(', ')}`;
}
