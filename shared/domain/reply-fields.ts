/** Values of a reply's header fields, as browsers read them. */

/** The pause that a Retry-After asks for, in milliseconds from now; null when it is neither seconds nor a date. */
export function parseRetryAfter(value: string, nowMs: number): number | null {
  const text = value.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000;
  // Date.parse accepts much as a date; an HTTP date begins with the day of the week and has a time.
  if (!/^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d:\d/i.test(text.slice(0, 100))) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}

/** The URL that a Location names, which may be relative to `url`; null for none. */
export function resolveLocation(location: string, url: string): string | null {
  if (location.trim() === '') return null;
  // Headers arrive as latin1; a location with letters beyond that was sent as UTF-8.
  const utf8 = Buffer.from(location, 'latin1').toString('utf8');
  return URL.parse(utf8.includes('\uFFFD') ? location : utf8, url)?.href ?? null;
}
