/**
 * The seed of the random runs. FAULT_SEED is for searching: a number, or `date` for a new one each
 * day. Without it the runs are the same each time, so that only a change can make one fail.
 */
import { AppError } from '../../shared/domain/errors.ts';

/** Arbitrary. */
const USUAL = 5;

/** `date` is the day in UTC as YYYYMMDD, so that its runs can be repeated later. Throws `usage` for an invalid seed. */
export function campaignSeed(text: string | undefined, nowMs: number): number {
  if (text === undefined || text === '') return USUAL;
  const digits = text === 'date' ? new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', '') : text;
  if (!/^\d{1,9}$/.test(digits))
    throw new AppError('usage', `a seed of runs is a whole number of at most nine digits, or date, not ${text}`);
  return Number(digits);
}
