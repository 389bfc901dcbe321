/** A row of the table of reasons, and its texts. Pure. */
import type { MissReason } from './failure-kind.ts';
import { plain } from './terminal-text.ts';

export interface ReasonRow {
  /** `gone` only where at least half of the products are. */
  reason: MissReason;
  /** Status, rule and missing field, as far as they say more than the reason. */
  sign: string | null;
  /** Products with this outcome. */
  products: number;
  /** Products without an outcome whose first try came to it: they wait for the second one, or for a proof. */
  waiting: number;
  /** Both, of the products that were tried or have an outcome; from 0 to 1. */
  share: number;
  /** The URL of one of the products. */
  url: string | null;
  /** What the pages have in common, as a clause; null where reason and sign say it. */
  evidence: string | null;
  /** What a person should do. */
  todo: string;
}

/** Reason and sign in a few words. */
export const nameOf = ({ reason, sign }: Pick<ReasonRow, 'reason' | 'sign'>): string =>
  sign === null ? reason : `${reason} ${sign}`;

/** Evidence and advice of a row in a sentence. */
export const adviceOf = ({ evidence, todo }: Pick<ReasonRow, 'evidence' | 'todo'>): string =>
  evidence === null ? todo : `${evidence}: ${todo}`;

/** The advice of each row in a line, under its name. */
export const advicesOf = (rows: readonly ReasonRow[]): string =>
  rows.map((row) => `${plain(nameOf(row))}: ${plain(adviceOf(row), 600)}.`).join(' ');

/** The first rows in a line, with their counts: `147 parse field-missing title, 27 http-status 500`. */
export function namesOf(rows: readonly ReasonRow[], limit = 3): string {
  const shown = rows.slice(0, limit).map((row) => `${row.products + row.waiting} ${nameOf(row)}`);
  return [...shown, ...(rows.length > limit ? [`${rows.length - limit} more`] : [])].join(', ');
}
