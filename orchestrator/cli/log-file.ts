/** Bounds of a run's log.ndjson: no line is longer than MAX_LINE_BYTES, and the file makes room by moving to log.1.ndjson. */
import { renameSync, statSync } from 'node:fs';

/** Whatever a stranger, a page or a cloud said: a line is for reading, and goes to the log many times a minute. */
export const MAX_LINE_BYTES = 2_000;
/** Of each of the two files. A night of 100 instances writes some megabytes. */
export const MAX_LOG_BYTES = 32_000_000;

/** What a line that was too long keeps of its message, and of each further field. */
const MESSAGE_BYTES = 800;
const FIELD_BYTES = 200;

/** A line of JSON as it is, or what fits of it: still one JSON object, with `truncatedBytes` for the size that it had. */
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

/** Small values as they are, others as the beginning of their text; at most `mostBytes` as JSON. */
function cut(value: unknown, mostBytes: number): unknown {
  const sizeOf = (one: unknown): number => Buffer.byteLength(JSON.stringify(one) ?? '');
  if (sizeOf(value) <= mostBytes) return value;
  let text = (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, mostBytes);
  while (sizeOf(text) > mostBytes - 4) text = text.slice(0, Math.floor(text.length * 0.8));
  return `${text.toWellFormed()}…`;
}

/** Where the lines before those of `file` are, if there are any. */
export const olderLogOf = (file: string): string => file.replace(/(\.[^./]*)?$/, '.1$1');

/** Moves the log aside when it is full; what was aside before is gone then. */
export class LogRotation {
  readonly #file: string;
  readonly #mostBytes: number;
  readonly #reopen: () => void;
  #bytes: number;

  /** @param reopen makes the writer open `file` anew */
  constructor(file: string, reopen: () => void, mostBytes = MAX_LOG_BYTES) {
    this.#file = file;
    this.#mostBytes = mostBytes;
    this.#reopen = reopen;
    this.#bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Before this line is written. */
  makeRoomFor(line: string): void {
    const bytes = Buffer.byteLength(line);
    this.#bytes += bytes;
    if (this.#bytes <= this.#mostBytes) return;
    this.#bytes = bytes;
    try {
      renameSync(this.#file, olderLogOf(this.#file));
    } catch {
      // A state folder that is gone: what cannot be written is said once, by the writer.
    }
    this.#reopen();
  }
}
