/** Runs users' patterns with RE2: a match always takes time linear in the text. */
import { firstLineOf } from '../../domain/errors.ts';
import { RE2JS, type RE2JS as Program } from 're2js';

/** A compiled pattern; its memory and its time per character are bounded. */
export interface Pattern {
  /** Number of capturing groups. */
  groupCount: number;
  /** True when the pattern matches anywhere in the text. */
  isIn(text: string): boolean;
  /** True when the pattern matches the whole text. */
  fits(text: string): boolean;
  /**
   * Start and end of the numbered group (0: the whole match) in the first `limit` matches; an unmatched group gives
   * nothing. `beforeEach` is called before every search and may throw: one search is linear in the text, many are not.
   */
  spans(text: string, group: number, limit: number, beforeEach: () => void): [start: number, end: number][];
}

/** RE2 bounds the program size, and so counted repetitions; this bounds the pattern text. */
const MAX_PATTERN_CHARS = 4_000;

/** Throws an Error with a one-line message about the fault in the pattern. */
export function compilePattern(pattern: string): Pattern {
  if (pattern.length > MAX_PATTERN_CHARS) throw new Error(`it is longer than ${MAX_PATTERN_CHARS} characters`);
  const program: Program = RE2JS.compile(pattern);
  return {
    groupCount: program.groupCount(),
    isIn: (text) => program.matcher(text).find(),
    fits: (text) => program.matcher(text).matches(),
    spans(text, group, limit, beforeEach) {
      const found: [number, number][] = [];
      const matcher = program.matcher(text);
      while (found.length < limit) {
        beforeEach();
        if (!matcher.find()) break;
        const start = matcher.start(group);
        if (start >= 0) found.push([start, matcher.end(group)]);
      }
      return found;
    },
  };
}

/** The fault of a pattern or the requested group, on one line; null when both are usable. */
export function findPatternFault(pattern: string, group = 0): string | null {
  try {
    const { groupCount } = compilePattern(pattern);
    if (group <= groupCount) return null;
    const has = groupCount === 0 ? 'no groups' : groupCount === 1 ? 'only one group' : `only ${groupCount} groups`;
    return `the pattern ${JSON.stringify(pattern)} has ${has}, but group ${group} is requested`;
  } catch (error) {
    return `the pattern ${JSON.stringify(pattern)} cannot be used: ${firstLineOf(error)} (RE2 syntax: no back references or look-ahead)`;
  }
}
