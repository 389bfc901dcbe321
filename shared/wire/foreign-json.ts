/**
 * JSON that another machine wrote, parsed within bounds: a few hundred kilobytes of it may unpack, nest or list so much
 * that the parser takes gigabytes. The bounds are checked on the bytes, before anything is parsed.
 */
import { z } from 'zod';
import { plain } from '../domain/terminal-text.ts';

/** Maximum nesting: a value in a list of a row of a result is at depth 6. */
const MAX_DEPTH = 16;
/** Maximum values, counting every list, object and member. */
const MAX_VALUES = 300_000;
/**
 * Maximum beginnings of objects, as sequences of keys: rows of one table begin alike. V8 keeps a shape for each, in
 * some 300 bytes.
 */
const MAX_SHAPES = 50_000;
/** A shorter text cannot have many. */
const FEW_SHAPES_BYTES = 100_000;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
/** `[` and `]`, `{` and `}`: bit 0x20 alone distinguishes the pairs. */
const [OPEN, CLOSE, CASE] = [0x5b, 0x5d, 0x20];

/** How many values this JSON has, roughly. Throws an Error of one sentence when it nests or lists too much. */
export function countValues(json: Uint8Array, maxValues = MAX_VALUES): number {
  let [depth, values, keyAt, keyEnd] = [0, 1, 0, 0];
  /**
   * The shapes of objects, by the shape that each extends and its last key; and the shape of each object that is open.
   */
  const shapes = json.length < FEW_SHAPES_BYTES ? null : new Map<string, number>();
  const open = [0];
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]!;
    if (byte === QUOTE) {
      keyAt = i + 1;
      // Within a text nothing counts.
      for (i++; i < json.length && json[i] !== QUOTE; i++) if (json[i] === BACKSLASH) i++;
      keyEnd = i;
    } else if (byte === COMMA) values++;
    else if (byte === COLON && shapes !== null) {
      const key = bufferOf(json).toString('latin1', keyAt, Math.min(keyEnd, keyAt + 100));
      const extended = `${open[depth]} ${key}`;
      const shape = shapes.get(extended) ?? shapes.size + 1;
      open[depth] = shape;
      shapes.set(extended, shape);
      if (shapes.size > MAX_SHAPES) throw new Error(`it has objects of more than ${MAX_SHAPES} shapes`);
    } else if ((byte & ~CASE) === OPEN) {
      values++;
      if (++depth > MAX_DEPTH) throw new Error(`it is nested more than ${MAX_DEPTH} deep`);
      open[depth] = 0;
    } else if ((byte & ~CASE) === CLOSE) depth--;
    else continue;
    if (values > maxValues) throw new Error(`it has more than ${maxValues} values`);
  }
  return values;
}

/** The value of this JSON in the schema's form. Throws an Error of one sentence, whatever the text is. */
export function parseForeign<T>(schema: z.ZodType<T>, json: Uint8Array, maxValues?: number): T {
  countValues(json, maxValues);
  return parseCounted(schema, json);
}

/** The same for JSON that countValues() has accepted. */
export function parseCounted<T>(schema: z.ZodType<T>, json: Uint8Array): T {
  const parsed = schema.safeParse(toValue(json));
  if (parsed.success) return parsed.data;
  const { path = [], message = parsed.error.message } = parsed.error.issues[0] ?? {};
  throw new Error(plain(path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`));
}

function toValue(json: Uint8Array): unknown {
  let fault: string;
  try {
    return JSON.parse(bufferOf(json).toString('utf8'));
  } catch (error) {
    // It quotes the text.
    fault = plain((error as Error).message);
  }
  throw new Error(fault);
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);

/** A list whose first wrong entry is the only one reported: zod describes every one, in some 500 bytes each. */
export const foreignList = <T>(entry: z.ZodType<T>): z.ZodType<T[]> =>
  z.custom<T[]>((given) => Array.isArray(given) && given.every((one) => entry.safeParse(one).success));
