/**
 * Where the program writes. A terminal obeys what is written to it, so no control character from outside (pages, AWS,
 * databases, file names) gets there: text for people is escaped wherever it goes, and data (a document, rows) where it
 * goes to a terminal. A pipe and a file get data exactly. No other file writes to stdout or stderr; a test checks that.
 */
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { printable } from '../../shared/domain/terminal-text.ts';
import { painter, type Tone } from './paint.ts';

/** Text for people, in one or several lines. */
export function writeText(to: NodeJS.WriteStream, text: string, tone: Tone = 'plain'): void {
  to.write(`${painter(to)(tone, printable(text))}\n`);
}

/** Data in whole lines. On a terminal it has the escapes of JSON: a document stays one. */
export function writeData(to: NodeJS.WriteStream, data: string): void {
  to.write(to.isTTY ? printable(data) : data);
}

/** Streams data, in pieces that end with a line, to stdout or into a stream that it ends. */
export async function streamData(
  to: Writable,
  lines: AsyncIterable<string> | Iterable<string>,
  isTerminal: boolean,
): Promise<void> {
  const shown = async function* (): AsyncGenerator<string> {
    for await (const line of lines) yield isTerminal ? printable(line) : line;
  };
  await pipeline(shown, to, { end: to !== process.stdout });
}
