/** Limits on crawled values, and making them fit their columns. */
import type { FieldType } from '../../shared/domain/mapping.ts';

/** A value is cut here, in UTF-8 bytes: what MySQL's TEXT holds. */
export const MAX_VALUE_BYTES = 65_535;
/** A field with `all` keeps at most this many values. */
export const MAX_VALUES = 1_000;

/** Text as a database takes it: no NUL, no lone surrogates, at most MAX_VALUE_BYTES. */
export function cleanText(text: string): string {
  const whole = text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
  return cutToBytes(whole.toWellFormed(), MAX_VALUE_BYTES);
}

/** The longest beginning of the text that fits the bytes without cutting a character in two. */
export function cutToBytes(text: string, maxBytes: number): string {
  // A UTF-16 unit is at most three bytes, so most texts need no look at their bytes.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text);
  let end = maxBytes;
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** The value as its column wants it; null for an empty text, which counts as no value. */
export function fitValue(value: string | number, type: FieldType): string | number | null {
  if (typeof value === 'string') return value === '' ? null : value;
  return type === 'text' ? String(value) : value;
}
