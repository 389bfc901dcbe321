/** Estimates the size of rows in the journal and in parts. */
import type { FieldValue, Row } from '../../shared/domain/mapping.ts';
import { isUnread } from '../../shared/domain/unread-number.ts';

/** Quotes, colon, comma; or a number. */
const FIXED_BYTES = 16;

/** Approximate bytes of the row's JSON, in one pass without building it; escapes are not counted. */
export function rowBytes(row: Row): number {
  let bytes = FIXED_BYTES;
  for (const [name, value] of Object.entries(row)) bytes += name.length + valueBytes(value);
  return bytes;
}

function valueBytes(value: FieldValue): number {
  if (typeof value === 'string') return FIXED_BYTES + Buffer.byteLength(value);
  if (isUnread(value)) return 4 * FIXED_BYTES + Buffer.byteLength(value.text);
  if (!Array.isArray(value)) return FIXED_BYTES;
  let bytes = FIXED_BYTES;
  for (const one of value) bytes += valueBytes(one);
  return bytes;
}
