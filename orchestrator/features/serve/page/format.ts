/**
 * Numbers and times as text; a number and its unit stay on one line. Times are the viewer's own; the title of each
 * shows UTC.
 */
const number = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const count = (n: number): string => number.format(n);
export const short = (n: number): string => (n < 10_000 ? number.format(Math.round(n * 10) / 10) : compact.format(n));
export const usd = (n: number): string => `$${n.toFixed(n < 1 ? 3 : 2)}`;
export const share = (n: number): string => `${(n * 100).toFixed(n > 0 && n < 0.1 ? 1 : 0)}\u00a0%`;
export const rate = (n: number): string => (n < 10 ? n.toFixed(2) : short(n));

export const milliseconds = (ms: number): string => `${count(Math.floor(ms))}\u00a0ms`;

export const duration = (ms: number): string => durationOf(ms).replaceAll(' ', '\u00a0');

function durationOf(ms: number): string {
  if (ms !== 0 && Math.abs(ms) < 1_000) return `${Math.round(Math.abs(ms))} ms`;
  const seconds = Math.round(Math.abs(ms) / 1_000);
  if (seconds < 60)
    return ms !== 0 && Math.abs(ms) < 10_000 ? `${(Math.abs(ms) / 1_000).toFixed(1)} s` : `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return seconds < 600 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s` : `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

const zoned = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short',
});

/** `27 Nov, 03:12 CET` in the viewer's zone. */
export const withZone = (at: number | string): string => zoned.format(new Date(at));
export const clock = (at: number | string): string => time.format(new Date(at));
export const date = (at: number | string): string => day.format(new Date(at));
export const utc = (at: number | string): string => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** Text that is torn where a line ends cannot be read: numbers, codes, dates. */
export const isUnbreakable = (text: string): boolean => text.length <= 24 && !/[^\S\u00a0]/.test(text);

export const plural = (n: number, word: string): string => `${count(n)} ${word}${n === 1 ? '' : 's'}`;

/** A value of a row as text. */
export const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');
