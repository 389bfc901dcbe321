/**
 * What the journal says of the requests, as lines of the request log: cut into objects, and dropped when these are in
 * the bucket. The same records give the same lines, so a process that was killed during an upload repeats its bytes.
 */
import {
  type ClockReading,
  type LogLine,
  type LogRef,
  PURPOSES,
  type Purpose,
  writeLine,
} from '../../shared/wire/request-log.ts';
import { SEQ_JUMP } from '../../shared/wire/part.ts';

/** An object that is not in the bucket yet. */
export interface LogCut {
  seq: number;
  text: string;
}

export interface SentRequest {
  atMs: number;
  domain: number;
  host: string;
  purpose: Purpose;
  browser: boolean;
  /** The interval in force at the domain; 0 before the first orders. */
  intervalMs: number;
}

export class RequestLog {
  /** Cuts that are not in the bucket, in order. */
  readonly cuts: LogCut[] = [];
  /** Objects in the bucket, in order. */
  readonly stored: LogRef[] = [];
  nextSeq = 0;
  /** Requests since the last cut. */
  requests = 0;
  #lines: string[] = [];
  /** Lines since the last cut that are not repeated ones. */
  #news = 0;
  /** The process, by the wall clock when it began; null before the first. */
  #process: { number: number; startedMs: number } | null = null;
  #clock: ClockReading | null = null;
  /** The hosts, by domain and name, and the intervals that the lines since the last cut name. */
  readonly #hosts = new Map<string, number>();
  readonly #paces = new Map<number, number>();
  /** Of many hosts: those that were granted again and not asked since. */
  readonly #again = new Set<number>();
  /** The host that each domain asked last. */
  readonly #asked = new Map<number, string>();

  /** Something happened that no cut has. */
  get isCuttable(): boolean {
    return this.#news > 0;
  }

  /** @param startedMs the clock of all times that follow, up to the next process */
  begin(startedMs: number): void {
    this.#process = { number: (this.#process?.number ?? -1) + 1, startedMs };
    this.#clock = null;
    if (this.#lines.length > 0) this.#write({ kind: 'process', ...this.#process });
  }

  read(clock: ClockReading): void {
    this.#clock = clock;
    if (this.#lines.length > 0) this.#writeClock(clock);
  }

  /** Of many hosts: one that was asked, and left, is granted again: maybe after another owner. */
  again(domain: number): void {
    this.#again.add(domain);
  }

  sent({ atMs, domain, host: name, purpose, browser, intervalMs }: SentRequest): void {
    const ms = this.#sinceStart(atMs);
    this.#repeat();
    if (intervalMs > 0 && this.#paces.get(domain) !== intervalMs) {
      this.#paces.set(domain, intervalMs);
      this.#write({ kind: 'pace', domain, intervalMs });
    }
    if (this.#again.delete(domain)) this.#write({ kind: 'again', domain });
    const host = this.#numberOf(name, domain);
    this.#asked.set(domain, name);
    this.#write({ kind: 'sent', ms, host, purpose: `${PURPOSES[purpose]}${browser ? 'b' : ''}` });
    this.requests++;
    this.#news++;
  }

  /** The domain's request has ended. @param answer its status, or why there was none */
  ended({ atMs, domain, answer }: { atMs: number; domain: number; answer: string }): void {
    const name = this.#asked.get(domain);
    if (name === undefined) return;
    const ms = this.#sinceStart(atMs);
    this.#repeat();
    this.#write({ kind: 'ended', ms, host: this.#numberOf(name, domain), answer });
    this.#news++;
  }

  cut(seq: number): void {
    this.cuts.push({ seq, text: this.#lines.map((line) => `${line}\n`).join('') });
    this.nextSeq = seq + 1;
    this.#lines = [];
    this.requests = 0;
    this.#news = 0;
    this.#hosts.clear();
    this.#paces.clear();
  }

  store(ref: LogRef): void {
    this.stored.push(ref);
    const at = this.cuts.findIndex(({ seq }) => seq === ref.seq);
    if (at !== -1) this.cuts.splice(at, 1);
  }

  /** Records were lost: cuts after the last known one may have used its next numbers. */
  avoidUsedNumbers(): void {
    this.nextSeq += SEQ_JUMP;
  }

  /** A journal of an earlier version does not say when its processes began: such a one began with its first request. */
  #sinceStart(atMs: number): number {
    if (this.#process === null) this.begin(atMs);
    return Math.floor(atMs - this.#process!.startedMs);
  }

  /** Makes the lines readable by themselves. */
  #repeat(): void {
    if (this.#lines.length > 0) return;
    this.#write({ kind: 'process', ...this.#process! });
    if (this.#clock !== null) this.#writeClock(this.#clock);
  }

  #writeClock({ localMs, serverMs, roundTripMs }: ClockReading): void {
    const ms = this.#sinceStart(localMs);
    this.#write({ kind: 'clock', ms, aheadMs: Math.round(serverMs - localMs), roundTripMs: Math.ceil(roundTripMs) });
  }

  #numberOf(name: string, domain: number): number {
    const key = `${domain} ${name}`;
    const known = this.#hosts.get(key);
    if (known !== undefined) return known;
    const host = this.#hosts.size;
    this.#hosts.set(key, host);
    this.#write({ kind: 'host', host, domain, name });
    return host;
  }

  #write(line: LogLine): void {
    this.#lines.push(writeLine(line));
  }
}
