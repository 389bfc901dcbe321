/**
 * From which seed random runs are drawn. FAULT_SEED is for searching: a number, or `date` for a new one each
 * day. Without it the runs are the same each time, so that what fails is what was changed.
 */
import { AppError } from '../../shared/domain/errors.ts';

/** Any number would do. */
const USUAL = 5;

/** `date` is the day in UTC as YYYYMMDD, so that the runs of a day can be played again on another. Throws `usage` for what is no seed. */
export function campaignSeed(text: string | undefined, nowMs: number): number {
  if (text === undefined || text === '') return USUAL;
  const digits = text === 'date' ? new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', '') : text;
  if (!/^\d{1,9}$/.test(digits))
    throw new AppError('usage', `a seed of runs is a whole number of at most nine digits, or date, not ${text}`);
  return Number(digits);
}
