/** Small words and figures that plans are told in. */
import { formatDuration } from '../../shared/domain/quantity.ts';

/** Cents; below one, as many digits as it takes to say more than nothing. */
export const dollars = (usd: number): string =>
  `$${usd === 0 || usd >= 0.01 ? usd.toFixed(2) : Number(usd.toPrecision(2))}`;

export const plural = (n: number, word: string): string => `${n} ${word}${n === 1 ? '' : 's'}`;

/** Up to the next second, from an hour on to the next minute: what formatDuration can say without losing time. */
export function roundUp(ms: number): number {
  const unitMs = ms < 3_600_000 ? 1_000 : 60_000;
  return Math.ceil(ms / unitMs) * unitMs;
}

/** As it is typed after --deadline: without the space. */
export const asFlag = (ms: number): string => formatDuration(ms).replaceAll(' ', '');

/** Rounded down, so that 100 % means always. */
export const percent = (share: number): string => `${Math.floor(share * 10_000) / 100} %`;
