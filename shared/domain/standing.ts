/** How a run stands against its deadline: one figure and one wording for the page, the terminal and `status`. */
import { formatDuration } from './quantity.ts';

export interface Standing {
  /** When its rows are or will be published, ISO 8601. */
  end: string;
  /** The time from the deadline to that moment, in milliseconds: positive is late, negative is to spare. */
  lateMs: number;
  /** Products that a run which is over has left at its deadline. */
  uncrawled: number;
}

export const isLate = ({ lateMs, uncrawled }: Omit<Standing, 'end'>): boolean => lateMs > 0 || uncrawled > 0;

/** `12m 5s late`, `1h 3m to spare`, `454 products not crawled in time`. */
export function standingInWords({ lateMs, uncrawled }: Omit<Standing, 'end'>): string {
  if (uncrawled > 0) return `${uncrawled} products not crawled in time`;
  return `${formatDuration(Math.abs(lateMs))} ${lateMs > 0 ? 'late' : 'to spare'}`;
}
