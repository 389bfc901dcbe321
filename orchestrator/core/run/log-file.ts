/** Bounds of a run's log.ndjson: no line exceeds MAX_LINE_BYTES, and a full file is rotated to log.1.ndjson. */
import { renameSync, statSync } from 'node:fs';

/** Bounds text from instances, pages or AWS: a line must stay readable, and many are written every minute. */
export const MAX_LINE_BYTES = 2_000;
/** Size of each of the two files. A night of 100 instances writes some megabytes. */
const MAX_LOG_BYTES = 32_000_000;

/** What a truncated line keeps of its message, and of each further field. */
const MESSAGE_BYTES = 800;
const FIELD_BYTES = 200;

/** A line of JSON unchanged, or truncated: still one JSON object, with its original size in `truncatedBytes`. */
export function boundLine(line: string): string {
  const truncatedBytes = Buffer.byteLength(line);
  if (truncatedBytes <= MAX_LINE_BYTES) return line;
  const { level, time, run, slot, epoch, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const place = Object.entries({ slot, epoch }).filter(([, value]) => typeof value === 'number');
  let kept: Record<string, unknown> = { level, time, run, ...Object.fromEntries(place) };
  kept = { ...kept, msg: cut(msg, MESSAGE_BYTES), truncatedBytes };
  for (const [name, value] of Object.entries(rest)) {
    const more = { ...kept, [name]: cut(value, FIELD_BYTES) };
    if (Buffer.byteLength(JSON.stringify(more)) < MAX_LINE_BYTES) kept = more;
  }
  return `${JSON.stringify(kept)}\n`;
}

/** Small values unchanged, others truncated; at most `mostBytes` as JSON. */
function cut(value: unknown, mostBytes: number): unknown {
  const sizeOf = (one: unknown): number => Buffer.byteLength(JSON.stringify(one) ?? '');
  if (sizeOf(value) <= mostBytes) return value;
  let text = (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, mostBytes);
  while (sizeOf(text) > mostBytes - 4) text = text.slice(0, Math.floor(text.length * 0.8));
  return `${text.toWellFormed()}…`;
}

/** The file with the lines before those of `file`, if it exists. */
export const olderLogOf = (file: string): string => file.replace(/(\.[^./]*)?$/, '.1$1');

/** Rotates the log when it is full; the previous rotated file is overwritten. */
export class LogRotation {
  readonly #file: string;
  readonly #mostBytes: number;
  readonly #reopen: () => void;
  #bytes: number;

  /** @param reopen makes the writer open `file` again */
  constructor(file: string, reopen: () => void, mostBytes = MAX_LOG_BYTES) {
    this.#file = file;
    this.#mostBytes = mostBytes;
    this.#reopen = reopen;
    this.#bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  }

  makeRoomFor(line: string): void {
    const bytes = Buffer.byteLength(line);
    this.#bytes += bytes;
    if (this.#bytes <= this.#mostBytes) return;
    this.#bytes = bytes;
    try {
      renameSync(this.#file, olderLogOf(this.#file));
    } catch {
      // The state folder is gone: the writer reports that once.
    }
    this.#reopen();
  }
}
