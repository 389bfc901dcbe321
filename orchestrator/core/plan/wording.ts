/** Formatting of the figures in a plan. */
import { formatDuration } from '../../../shared/domain/quantity.ts';

/** Cents; below one cent, as many digits as needed for the first non-zero one. */
export const dollars = (usd: number): string =>
  `$${usd === 0 || usd >= 0.01 ? usd.toFixed(2) : Number(usd.toPrecision(2))}`;

/** The number, with separators between thousands, and the word in singular or plural. */
export const plural = (n: number, word: string): string => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;

/**
 * Rounds up to the next second, from an hour on to the next minute: formatDuration can print it without losing time.
 */
export function roundUp(ms: number): number {
  const unitMs = ms < 3_600_000 ? 1_000 : 60_000;
  return Math.ceil(ms / unitMs) * unitMs;
}

/** The duration as typed after --deadline: without the space. */
export const asFlag = (ms: number): string => formatDuration(ms).replaceAll(' ', '');

/** The share in percent, rounded down, so that 100 % means always. */
export const percent = (share: number): string => `${Math.floor(share * 10_000) / 100} %`;
