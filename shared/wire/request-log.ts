/**
 * The request log of an instance: when it sent each request to the site, and what came back. Lines of text, in gzip
 * objects beside its parts:
 *
 *   process 0 2026-11-28T01:02:03.456Z   the instance's first process, and its clock at 0 ms
 *   clock 60012 -35 12                   at 60,012 ms the main server's clock was 35 ms behind; the round trip took 12
 *   host 0 0 shop.example                host 0, asked at the pace of domain 0
 *   pace 0 2000                          the interval at domain 0, from here on
 *   again 0                              of many hosts: this one is granted again after all that was asked there
 *   > 62003 0 p                          a request to host 0 was sent
 *   < 62350 0 200                        it has ended
 *
 * Times are whole milliseconds since the process began, by its monotonic clock. Each object can be read by itself: it
 * repeats the lines that still hold.
 */
import { z } from 'zod';

/**
 * What a request was for: the product's own page, a further page, a redirect, a canary page, robots.txt of one of many
 * hosts. `b` follows where a browser sent it.
 */
export const PURPOSES = { product: 'p', further: 'f', redirect: 'r', canary: 'c', robots: 't' } as const;
export type Purpose = keyof typeof PURPOSES;

/** A cut of the request log that is in the bucket. */
export const logRefSchema = z.strictObject({
  seq: z.int().nonnegative(),
  key: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: z.int().nonnegative(),
});
export type LogRef = z.infer<typeof logRefSchema>;

/** Maximum requests in one object. */
export const LOG_REQUESTS = 20_000;

/** What one reply to a heartbeat says about the clocks. */
export interface ClockReading {
  /** The instance's clock half-way through the exchange. */
  localMs: number;
  /** The main server's clock when it answered. */
  serverMs: number;
  roundTripMs: number;
}

export type LogLine =
  | { kind: 'process'; number: number; startedMs: number }
  | { kind: 'clock'; ms: number; aheadMs: number; roundTripMs: number }
  | { kind: 'host'; host: number; domain: number; name: string }
  | { kind: 'pace'; domain: number; intervalMs: number }
  | { kind: 'again'; domain: number }
  | { kind: 'sent'; ms: number; host: number; purpose: string }
  | { kind: 'ended'; ms: number; host: number; answer: string };

/** One line, without its newline. */
export function writeLine(line: LogLine): string {
  switch (line.kind) {
    case 'process':
      return `process ${line.number} ${new Date(line.startedMs).toISOString()}`;
    case 'clock':
      return `clock ${line.ms} ${line.aheadMs} ${line.roundTripMs}`;
    case 'host':
      return `host ${line.host} ${line.domain} ${line.name}`;
    case 'pace':
      return `pace ${line.domain} ${line.intervalMs}`;
    case 'again':
      return `again ${line.domain}`;
    case 'sent':
      return `> ${line.ms} ${line.host} ${line.purpose}`;
    case 'ended':
      return `< ${line.ms} ${line.host} ${line.answer}`;
  }
}

/** Maximum of a number: sums of some of them are still times of a calendar. */
const MOST = 1e14;

/** The reverse of writeLine; throws an Error of one sentence for any other text. */
export function readLine(text: string): LogLine {
  const [mark, a = '', b = '', c = '', ...more] = text.split(' ');
  const line = more.length > 0 ? null : lineOf(mark!, a, b, c);
  const numbers = line === null ? [Number.NaN] : Object.values(line).filter((value) => typeof value === 'number');
  if (line === null || !numbers.every((number) => Math.abs(number) <= MOST))
    throw new Error(`no line of a request log: ${text.slice(0, 80)}`);
  return line;
}

function lineOf(mark: string, a: string, b: string, c: string): LogLine | null {
  switch (mark) {
    case '>':
      return { kind: 'sent', ms: numberIn(a), host: numberIn(b), purpose: c };
    case '<':
      return { kind: 'ended', ms: numberIn(a), host: numberIn(b), answer: c };
    case 'process':
      return { kind: 'process', number: numberIn(a), startedMs: Date.parse(b) };
    case 'clock':
      return { kind: 'clock', ms: numberIn(a), aheadMs: numberIn(b), roundTripMs: numberIn(c) };
    case 'host':
      return { kind: 'host', host: numberIn(a), domain: numberIn(b), name: c };
    case 'pace':
      return { kind: 'pace', domain: numberIn(a), intervalMs: numberIn(b) };
    case 'again':
      return { kind: 'again', domain: numberIn(a) };
    default:
      return null;
  }
}

/** Of an empty text NaN, which Number reads as 0. */
const numberIn = (text: string): number => (text === '' ? Number.NaN : Number(text));
