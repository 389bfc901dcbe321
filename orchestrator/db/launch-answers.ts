/** EC2's answers to launches as they stand in the rows: JSON, and in those of earlier versions the beginning of a text. */
import type { LaunchFailure, StateReason } from '../cloud/compute.ts';
import { REFUSAL_CAUSES } from '../cloud/compute.ts';
import { parseJson } from './rows.ts';

/** What a row says of the last call for its claim. */
export interface AnswerColumns {
  instance_id: string | null;
  last_error: string | null;
  answer: string | null;
}

/** The answer, and what is left of `last_error` when an earlier version has put the answer there. */
export function readAnswer(row: AnswerColumns): { answer: LaunchFailure | null; lastError: string | null } {
  if (row.answer !== null) return { answer: parseJson(row.answer) as LaunchFailure, lastError: row.last_error };
  const old = row.instance_id === null && row.last_error !== null ? parseOld(row.last_error) : null;
  return { answer: old, lastError: old === null ? row.last_error : null };
}

/** `refused pool: …`, `waiting throttled: …`, `used: …` and `unknown: …` were written until version 7 of the tables. */
function parseOld(text: string): LaunchFailure | null {
  const [, cause, message = ''] = /^(?:refused|waiting) ([a-z]+): (.*)$/s.exec(text) ?? [];
  const known = REFUSAL_CAUSES.find((c) => c === cause);
  if (known) return { kind: 'refused', cause: known, message };
  const [, word, said = ''] = /^(used|unknown): (.*)$/s.exec(text) ?? [];
  if (word === undefined) return null;
  return { kind: 'unknown', message: said, ...(word === 'used' ? { tokenUsed: true as const } : {}) };
}

export const readStateReason = (text: string | null): StateReason | null => parseJson(text) as StateReason | null;
