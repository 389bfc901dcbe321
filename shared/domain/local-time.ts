/** `2026-11-22 02:00:00 Asia/Tokyo`: a moment in the local time of that zone. */
export function showLocal(ms: number, timezone: string): string {
  // Swedish writes dates as ISO 8601 does.
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'medium' });
  return `${format.format(ms)} ${timezone}`;
}
