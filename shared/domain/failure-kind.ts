/**
 * How the failure of a product is described in one line, and what failures have in common: the instance counts by it,
 * the ledger keeps the line, and the table of reasons is made from either. Pure.
 */
import type { FailureReason, Outcome } from './outcome.ts';
import type { Evidence } from './verdict.ts';

/** A page with less visible text than this, without white space, that has scripts is probably built by them. */
export const LITTLE_TEXT_CHARS = 100;

const LITTLE_TEXT = `; under ${LITTLE_TEXT_CHARS} characters of text, and scripts`;
const FILLED = '; with values: ';
/** The most fields named in a detail. */
const MAX_FILLED = 5;

/** `gone` is no failure, but where nearly all products are gone, their addresses are wrong. */
export type MissReason = FailureReason | 'gone';

/** Products without a row, for one reason. `products`: that is their outcome. `waiting`: their first try came to it. */
export interface MissCount {
  reason: MissReason;
  /**
   * The detail of one of them as `ledgerDetail` describes it, perhaps cut; null for products that no instance has
   * tried.
   */
  detail: string | null;
  products: number;
  waiting: number;
  /** The URL of one of the products; null where it is not known. */
  url: string | null;
}

export interface FailureKind {
  /** The status of the reply; null without one, and for one that says nothing (200). */
  status: number | null;
  /** The rule that judged the reply; null where the reason says as much. */
  rule: string | null;
  /** The first required field without a value. */
  field: string | null;
  /** The fields that have one, as text; null where none is known. */
  filled: string | null;
  /** The page has hardly any text, and scripts. */
  isScriptBuilt: boolean;
}

/** What a page without a required value has. */
export interface PoorPage {
  isScriptBuilt: boolean;
  /** Names of the fields with a value. */
  filled: readonly string[];
}

/** The detail of a page without its values. @param what what is missing, as a clause */
export function describePoorPage(what: string, { isScriptBuilt, filled }: PoorPage): string {
  const named = filled.slice(0, MAX_FILLED).join(', ') + (filled.length > MAX_FILLED ? ' …' : '');
  return `${what}${isScriptBuilt ? LITTLE_TEXT : ''}${filled.length === 0 ? '' : FILLED + named}`;
}

export const describeMissingField = (name: string): string => `the required field ${name} has no value`;

/**
 * How the ledger describes what became of a product without a row: rule and status of the evidence, then the detail.
 */
export function ledgerDetail(
  result:
    | { outcome: 'gone'; status: number }
    | { outcome: 'failed'; detail: string; evidence?: Pick<Evidence, 'rule' | 'status'> },
): string {
  if (result.outcome === 'gone') return `HTTP ${result.status}`;
  const { detail, evidence } = result;
  if (!evidence) return detail;
  const status = evidence.status === null ? '' : `, HTTP ${evidence.status}`;
  return `${evidence.rule}${status}: ${detail}`;
}

/** The reason under which a product counts that has no row. */
export const missReason = (outcome: Outcome | null, reason: FailureReason | null): MissReason | null =>
  outcome === 'gone' ? 'gone' : outcome === 'failed' ? reason : null;

const HEAD = /^(?:HTTP (\d{3})$|([a-z][\w.-]*)(?:, HTTP (\d{3}))?: )/;

/**
 * The beginning of a detail that tells its kind. Of most reasons that is the first clause: what follows is text of the
 * site, another one for each product. The SQL of core/db/work-store.ts cuts alike.
 */
export function kindText(reason: MissReason, detail: string): string {
  const { whole, most, end } = KIND_TEXT;
  if (whole.includes(reason)) return detail.slice(0, most.whole);
  const at = detail.indexOf(end);
  return detail.slice(0, at >= 0 && at < most.clause ? at + end.length : most.clause);
}

/** @property whole reasons whose details are of few kinds, or name what the database refuses */
export const KIND_TEXT = {
  whole: ['parse', 'load'] as readonly MissReason[],
  most: { whole: 200, clause: 60 },
  end: ': ',
};

/** What a line of the ledger says, or its `kindText`. */
export function failureKind(reason: MissReason, detail: string | null): FailureKind {
  const text = detail ?? '';
  const [, alone, rule = null, beside] = HEAD.exec(text) ?? [];
  const status = Number(alone ?? beside ?? 200);
  const saysMore = rule !== null && rule !== reason && rule !== `status-${status}`;
  const [, filled = null] = text.split(FILLED);
  return {
    status: status === 200 ? null : status,
    rule: saysMore ? rule : null,
    field: /the required field (\S+) has no value/.exec(text)?.[1] ?? null,
    filled,
    isScriptBuilt: text.includes(LITTLE_TEXT),
  };
}

/**
 * The status or rule in a word or two; null where the reason says it all. Failures of one reason and sign are of one
 * kind.
 */
export function signOf({ status, rule, field }: FailureKind): string | null {
  const parts = [status, rule, field].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(' ');
}

/** What has no rule or status of its own, such as a DNS error, in its own words. */
export const wordsOf = (detail: string): string => detail.replace(HEAD, '').replace(/: $/, '');
