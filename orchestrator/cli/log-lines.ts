/** A run's log.ndjson in words. Its text may come from outside, so control characters are escaped. */
import { plain } from '../../shared/domain/terminal-text.ts';

export const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];

/** pino's numbers. */
const NUMBERS: Record<Level, number> = { debug: 20, info: 30, warn: 40, error: 50 };

export interface LogEntry {
  time: string;
  level: Level;
  message: string;
  fields: Record<string, unknown>;
}

export interface LogFilter {
  level: Level;
  /** The slot whose lines are shown; null or omitted: all slots, and lines without a slot. */
  slot?: number | null;
}

/** The entry of a line; null for a torn line, or one of another log. */
export function parseLogLine(line: string): LogEntry | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { time, level, msg, pid: _pid, hostname: _host, run: _run, ...fields } = value as Record<string, unknown>;
  if (typeof time !== 'number' || typeof level !== 'number') return null;
  const known = LEVELS.toReversed().find((name) => level >= NUMBERS[name]) ?? 'debug';
  return { time: new Date(time).toISOString(), level: known, message: typeof msg === 'string' ? msg : '', fields };
}

export function isWanted(entry: LogEntry, filter: LogFilter): boolean {
  if (NUMBERS[entry.level] < NUMBERS[filter.level]) return false;
  const { slot = null } = filter;
  return slot === null || slotOf(entry) === slot;
}

/** Actions are logged as `kind slot.epoch`. */
function slotOf({ fields }: LogEntry): number | null {
  if (typeof fields.slot === 'number') return fields.slot;
  const match = typeof fields.action === 'string' ? / (\d+)\.\d+$/.exec(fields.action) : null;
  return match ? Number(match[1]) : null;
}

export function renderEntry(entry: LogEntry): string {
  const { slot, epoch, ...rest } = entry.fields;
  const place = typeof slot === 'number' ? ` slot ${slot}${typeof epoch === 'number' ? `.${epoch}` : ''}` : '';
  const more = Object.entries(rest).map(([key, value]) => `${key}=${wordOf(value)}`);
  const text = [entry.message, ...more].filter((part) => part !== '').join('  ');
  return `${entry.time.slice(0, 23).replace('T', ' ')} ${entry.level.padEnd(5)}${place} ${plain(text, 2_000)}`;
}

function wordOf(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return JSON.stringify(value) ?? 'null';
}
