/** Patterns of users, run by RE2: whatever the pattern and the text, a match takes time linear in the text. */
import type { RE2JS as Program } from 're2js';
import { RE2JS } from 're2js';

/** A pattern ready for use; its memory and its time per character are bounded. */
export interface Pattern {
  /** Number of capturing groups. */
  groupCount: number;
  /** True when the pattern is found anywhere in the text. */
  isIn(text: string): boolean;
  /** True when the pattern fits the text from its first character to its last. */
  fits(text: string): boolean;
  /**
   * The numbered group (0: the whole match) of the first `limit` matches; a group that took no part gives nothing. `beforeEach` is called before
   * every search and may throw: each is linear in the text, so many of them together may be far from it.
   */
  matches(text: string, group: number, limit: number, beforeEach: () => void): string[];
}

/** RE2's own bound on the size of a program keeps counted repetitions small; this bounds the text of the pattern. */
const MAX_PATTERN_CHARS = 4_000;

/** Throws an Error with one line that says what is wrong with the pattern. */
export function compilePattern(pattern: string): Pattern {
  if (pattern.length > MAX_PATTERN_CHARS) throw new Error(`it is longer than ${MAX_PATTERN_CHARS} characters`);
  const program: Program = RE2JS.compile(pattern);
  return {
    groupCount: program.groupCount(),
    isIn: (text) => program.matcher(text).find(),
    fits: (text) => program.matcher(text).matches(),
    matches(text, group, limit, beforeEach) {
      const found: string[] = [];
      const matcher = program.matcher(text);
      while (found.length < limit) {
        beforeEach();
        if (!matcher.find()) break;
        const value = matcher.group(group);
        if (value !== null) found.push(value);
      }
      return found;
    },
  };
}

/** What is wrong with a pattern and the group asked of it, on one line; null when both can be used. */
export function findPatternFault(pattern: string, group = 0): string | null {
  try {
    const { groupCount } = compilePattern(pattern);
    if (group <= groupCount) return null;
    const has = groupCount === 0 ? 'no groups' : groupCount === 1 ? 'only one group' : `only ${groupCount} groups`;
    return `the pattern ${JSON.stringify(pattern)} has ${has}; group ${group} is asked for`;
  } catch (error) {
    return `the pattern ${JSON.stringify(pattern)} cannot be used: ${lineOf(error)} (RE2 syntax: no back references or look-ahead)`;
  }
}

/** The first line of what was thrown. */
export function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0]!;
}
