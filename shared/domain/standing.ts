/** How a run stands against its deadline: one figure and one wording for the page, the terminal and `status`. */
import { formatDuration } from './quantity.ts';

export interface Standing {
  /** When its rows are or will be published, ISO 8601. */
  end: string;
  /** From the deadline to that moment, in milliseconds: positive is late, negative is to spare. */
  lateMs: number;
}

/** `12m 5s late`, `1h 3m to spare`. */
export const standingInWords = ({ lateMs }: Pick<Standing, 'lateMs'>): string =>
  `${formatDuration(Math.abs(lateMs))} ${lateMs > 0 ? 'late' : 'to spare'}`;
