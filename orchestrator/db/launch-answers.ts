/** EC2's answers to launches as stored: JSON, or in rows of earlier versions the prefix of a text. */
import type { LaunchFailure, StateReason } from '../cloud/compute.ts';
import { REFUSAL_CAUSES } from '../cloud/compute.ts';
import { parseJson } from './rows.ts';

/** A row's columns for the last call of its claim. */
export interface AnswerColumns {
  instance_id: string | null;
  last_error: string | null;
  answer: string | null;
}

/** The answer, and the rest of `last_error` when an earlier version stored the answer there. */
export function readAnswer(row: AnswerColumns): { answer: LaunchFailure | null; lastError: string | null } {
  if (row.answer !== null) return { answer: parseJson(row.answer) as LaunchFailure, lastError: row.last_error };
  const old = row.instance_id === null && row.last_error !== null ? parseOld(row.last_error) : null;
  return { answer: old, lastError: old === null ? row.last_error : null };
}

/** Up to version 7 of the tables: `refused pool: …`, `waiting throttled: …`, `used: …` and `unknown: …`. */
function parseOld(text: string): LaunchFailure | null {
  const [, cause, message = ''] = /^(?:refused|waiting) ([a-z]+): (.*)$/s.exec(text) ?? [];
  const known = REFUSAL_CAUSES.find((c) => c === cause);
  if (known) return { kind: 'refused', cause: known, message };
  const [, word, said = ''] = /^(used|unknown): (.*)$/s.exec(text) ?? [];
  if (word === undefined) return null;
  return { kind: 'unknown', message: said, ...(word === 'used' ? { tokenUsed: true as const } : {}) };
}

export const readStateReason = (text: string | null): StateReason | null => parseJson(text) as StateReason | null;
