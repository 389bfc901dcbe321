/** `assert` of a mapping's fields: which values of a row break it, and what becomes of them. Pure. */
import { compilePattern } from '../../../shared/adapters/steps/regex.ts';
import type { Assertion, ChainValue, FieldValue, Mapping, Row, Scalar } from '../../../shared/domain/mapping.ts';
import { isAmbiguous, readingsOf } from '../../../shared/domain/ambiguous-number.ts';

/** A value that breaks its field's assertion. */
export interface Broken {
  /** The mapping's spelling. */
  field: string;
  /** What becomes of a value that breaks it; of a required field, and of the key of a row, `empty` is `fail`. */
  else: Assertion['else'];
  /** `0 is below min 0.01`. */
  words: string;
}

/** The detail as the ledger has it. */
export const detailOf = ({ field, words }: Broken): string => `${field}: ${words}`;

/** A number of a row that stands, by lower-case field. */
export type Standing = ReadonlyMap<string, number>;

interface Rule {
  field: string;
  else: Assertion['else'];
  maxChange: number | undefined;
  /** What the value breaks, in words; null when it breaks nothing. */
  judge: (value: Scalar, standing: number | undefined) => string | null;
}

/** Those of all pages of a mapping. */
export class Assertions {
  readonly #rules = new Map<string, Rule>();

  constructor({ pages }: Mapping) {
    for (const { fields, rows } of pages) {
      for (const { name, assert, required } of fields) {
        if (assert === undefined || this.#rules.has(name.toLowerCase())) continue;
        const mustBe = required || name.toLowerCase() === rows?.key.toLowerCase();
        this.#rules.set(name.toLowerCase(), {
          field: name,
          else: assert.else === 'empty' && mustBe ? 'fail' : assert.else,
          maxChange: assert.maxChange,
          judge: compile(assert),
        });
      }
    }
  }

  get isEmpty(): boolean {
    return this.#rules.size === 0;
  }

  /** The fields for which the row that stands is needed. */
  get fieldsThatStand(): string[] {
    return [...this.#rules.values()].flatMap(({ field, maxChange }) => (maxChange === undefined ? [] : [field]));
  }

  has(field: string): boolean {
    return this.#rules.has(field.toLowerCase());
  }

  /**
   * What this row breaks. A number that can be read in two ways breaks an assertion if both readings do; what only one
   * of them breaks is known when the column is decided.
   */
  judge(row: Row, standing: Standing | undefined): Broken[] {
    const broken: Broken[] = [];
    for (const [field, value] of Object.entries(row)) {
      const rule = this.#rules.get(field.toLowerCase());
      const words = rule && wordsOf(rule, value, standing?.get(field.toLowerCase()));
      if (words) broken.push({ field: rule.field, else: rule.else, words });
    }
    return broken;
  }
}

function wordsOf({ judge }: Rule, value: FieldValue, standing: number | undefined): string | null {
  const judgeOne = (one: ChainValue): string | null => {
    if (!isAmbiguous(one)) return judge(one, standing);
    const readings = readingsOf(one).map((reading) => judge(reading, standing));
    return readings.every((words) => words !== null) ? (readings[0] ?? null) : null;
  };
  if (!Array.isArray(value)) return value === null ? null : judgeOne(value);
  for (const one of value) {
    const words = judgeOne(one);
    if (words !== null) return words;
  }
  return null;
}

const VALUE_CHARS = 80;

function compile(assert: Assertion): Rule['judge'] {
  const { min = -Infinity, max = Infinity, matches, oneOf, maxChange = Infinity } = assert;
  const pattern = matches === undefined ? null : compilePattern(matches);
  const values = oneOf === undefined ? null : new Set(oneOf.map(String));
  return (value, standing) => {
    const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, VALUE_CHARS)) : String(value);
    if (typeof value === 'number') {
      if (value < min) return `${shown} is below min ${min}`;
      if (value > max) return `${shown} is above max ${max}`;
      const change = standing === undefined || standing === 0 ? 0 : Math.abs((value - standing) / standing);
      if (change > maxChange) return `${shown} differs from ${standing} by more than ${Math.round(maxChange * 100)}%`;
    }
    if (pattern !== null && !pattern.isIn(String(value))) return `${shown} does not match ${matches}`;
    if (values !== null && !values.has(String(value))) return `${shown} is not one of the values allowed`;
    return null;
  };
}

/** How many values broke the assertion of a field, and one of them. */
interface AssertCount {
  empty: number;
  fail: number;
  hold: number;
  /** `P17: 0 is below min 0.01`. */
  example: string;
}

/** The counts by field, in the mapping's spelling. */
export type AssertCounts = Record<string, AssertCount>;

export function countBroken(counts: AssertCounts, productId: string, broken: readonly Broken[]): void {
  for (const { field, else: what, words } of broken) {
    const own = (counts[field] ??= { empty: 0, fail: 0, hold: 0, example: `${productId}: ${words}` });
    own[what]++;
  }
}

export function sumAssertCounts(all: Iterable<AssertCounts>): AssertCounts {
  const sum: AssertCounts = {};
  for (const counts of all)
    for (const [field, { example, ...own }] of Object.entries(counts)) {
      const total = (sum[field] ??= { empty: 0, fail: 0, hold: 0, example });
      for (const what of ['empty', 'fail', 'hold'] as const) total[what] += own[what];
    }
  return sum;
}

/** What the assertions say of a run: why it must be held, or null; and a line for each field whose values broke one. */
export interface AssertVerdict {
  holds: string | null;
  notes: string[];
}

export function judgeAsserts(counts: AssertCounts): AssertVerdict {
  const held = Object.entries(counts).filter(([, { hold }]) => hold > 0);
  const holds = held.map(([field, { hold, example }]) => `${hold} of ${field} (${example})`);
  const notes = Object.entries(counts).flatMap(([field, { empty, fail, example }]) => {
    const parts = [...(empty > 0 ? [`${empty} were left out`] : []), ...(fail > 0 ? [`${fail} failed (assert)`] : [])];
    return parts.length === 0
      ? []
      : [`values of ${field} broke its assert: ${parts.join(', ')}, for example ${example}`];
  });
  return { holds: holds.length === 0 ? null : `values broke an assert that holds the run: ${holds.join(', ')}`, notes };
}
