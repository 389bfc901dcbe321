/**
 * Where the program writes. A terminal obeys what is written to it, so no control character from outside (pages, AWS,
 * databases, file names) gets there: text for people is escaped wherever it goes, and data (a document, rows) where it
 * goes to a terminal. A pipe and a file get data exactly. No other file writes to stdout or stderr; a test checks that.
 */
import { Writable } from 'node:stream';
import { printable } from '../../shared/domain/terminal-text.ts';
import { painter, type Tone } from './paint.ts';

/** Text for people, in one or several lines. */
export function writeText(to: NodeJS.WriteStream, text: string, tone: Tone = 'plain'): void {
  to.write(`${painter(to)(tone, printable(text))}\n`);
}

/** Data in whole lines. On a terminal it has the escapes of JSON: a document stays one. */
export function writeData(to: NodeJS.WriteStream, data: string): void {
  to.write(dataFor(to, data));
}

/** For data that is streamed, in pieces that end with a line. */
export function dataStream(to: Writable & { isTTY?: boolean }): Writable {
  if (to.isTTY !== true) return to;
  return new Writable({
    decodeStrings: false,
    write: (piece: string, _encoding, done) => void to.write(dataFor(to, piece), done),
  });
}

const dataFor = ({ isTTY }: { isTTY?: boolean }, data: string): string => (isTTY === true ? printable(data) : data);
