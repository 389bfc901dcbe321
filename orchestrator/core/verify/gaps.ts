/**
 * The gaps between the requests of one address to a site, or of one instance to many hosts, as they were logged.
 * Requests of one process are compared by its own clock, those of different processes by the main server's, as far as
 * the replies to heartbeats have shown it. Memory: two requests for each domain or host.
 */
import type { LogLine } from '../../../shared/wire/request-log.ts';
import type { Moment, Span } from './owners.ts';

/** Two requests to one domain. */
export interface Gap {
  ms: number;
  /** By how much it may be longer or shorter; 0 within a process, Infinity where the clocks are not known. */
  offMs: number;
  /** The least that it should be. */
  intervalMs: number;
  host: string;
  /** When the later one was sent: by the main server's clock where that is known, else by the instance's. */
  atMs: number;
}

/** A process of an instance: the clock of its requests. */
interface Process {
  /** As the instance numbers it, from 0. */
  number: number;
  startedMs: number;
  /** The first and the last reading of the main server's clock; null before the first. */
  first: Reading | null;
  last: Reading | null;
}

interface Reading {
  ms: number;
  aheadMs: number;
  offMs: number;
}

interface Request {
  process: Process;
  /** Since the process began. */
  ms: number;
  host: string;
  /** What was due before it. */
  intervalMs: number;
  /** What is due after it. */
  paceMs: number;
  /** The last reading before it. */
  reading: Reading | null;
}

/** The requests to a domain or host. */
interface Asked {
  first: Request;
  last: Request;
  requests: number;
}

/** How far two clocks drift apart at most: an NTP client slews by 500 ppm, without one oscillators are nearer. */
const DRIFT = 5e-4;

export class Gaps {
  readonly #floorMs: number;
  readonly #domains: number;
  readonly #numberOf: ((host: string) => number) | null;
  readonly #onGap: (gap: Gap) => void;
  /** The first and the last request to each domain, or to each of many hosts by its number over all instances. */
  readonly #asked = new Map<number, Asked>();
  /** Of many hosts: earlier times in which it had one. */
  readonly #past: (Asked & { key: number })[] = [];
  /** Hosts that it was granted again, and has not asked since. */
  readonly #again = new Set<number>();
  /** The first requests of a process whose clock is not known yet, each with the one before it. */
  #undecided: [Request, Request][] = [];
  #process: Process | null = null;
  #requests = 0;
  /** Of the object being read. */
  readonly #hosts = new Map<number, { domain: number; name: string; key: number | null }>();
  readonly #paces = new Map<number, number>();
  /** The domains whose interval has changed since their last request. */
  readonly #changed = new Map<number, number>();

  /**
   * @param floorMs the least interval, whatever the logs say
   * @param domains of the site: a log that names another one would take memory for it. Infinity for many hosts, which
   *   each instance numbers itself
   * @param numberOf the number of a host by its name, the same for all instances; omitted: requests count by domain
   */
  constructor(
    { floorMs, domains, numberOf }: { floorMs: number; domains: number; numberOf?: (host: string) => number },
    onGap: (gap: Gap) => void,
  ) {
    this.#floorMs = floorMs;
    this.#domains = domains;
    this.#numberOf = numberOf ?? null;
    this.#onGap = onGap;
  }

  /** The next object of the log begins. */
  beginObject(): void {
    this.#hosts.clear();
  }

  /** The log of another instance at this address begins. */
  beginInstance(): void {
    this.#endProcess();
    this.#requests = 0;
    this.#paces.clear();
    this.#changed.clear();
    this.#again.clear();
  }

  /** Takes the next line; returns true for a request. Throws an Error of one sentence where no log has it. */
  take(line: LogLine): boolean {
    switch (line.kind) {
      case 'sent':
        this.#sent(line.ms, line.host);
        return true;
      case 'ended':
        return false;
      case 'process':
        // An object repeats what holds: the same process goes on. A damaged journal may give a number twice.
        if (line.number === this.#process?.number && line.startedMs === this.#process.startedMs) return false;
        this.#endProcess();
        this.#process = { number: line.number, startedMs: line.startedMs, first: null, last: null };
        return false;
      case 'clock':
        this.#read({ ms: line.ms, aheadMs: line.aheadMs, offMs: line.roundTripMs / 2 });
        return false;
      case 'host':
        this.#checkDomain(line.domain);
        this.#hosts.set(line.host, { domain: line.domain, name: line.name, key: null });
        return false;
      case 'again':
        this.#checkDomain(line.domain);
        this.#checkFollowed(this.#again);
        this.#again.add(line.domain);
        return false;
      case 'pace': {
        this.#checkDomain(line.domain);
        const before = this.#paces.get(line.domain);
        if (before === undefined && this.#domains === Infinity) this.#checkFollowed(this.#paces);
        if (before !== line.intervalMs) this.#changed.set(line.domain, before ?? 0);
        this.#paces.set(line.domain, line.intervalMs);
        return false;
      }
    }
  }

  /** The last log has ended. */
  end(): void {
    this.#endProcess();
  }

  /** The first and the last request to each host, of each time that it had it; after the end. */
  *spans(): Generator<Span> {
    for (const { key: host, first, last, requests } of [...this.#past, ...this.#lastSpans()])
      yield { host, first: this.#momentOf(first), last: this.#momentOf(last), requests };
  }

  *#lastSpans(): Generator<Asked & { key: number }> {
    for (const [key, asked] of this.#asked) yield { key, ...asked };
  }

  #momentOf(request: Request): Moment {
    return { ...serverTimeOf(request), intervalMs: request.paceMs };
  }

  #sent(ms: number, number: number): void {
    const process = this.#process;
    const at = this.#hosts.get(number);
    if (process === null || at === undefined) throw new Error('a request comes before its process or host');
    const { domain, name: host } = at;
    at.key ??= this.#numberOf === null ? domain : this.#numberOf(host);
    this.#requests++;
    const paceMs = Math.max(this.#floorMs, this.#paces.get(domain) ?? 0);
    // A request may have had its turn just before the interval changed.
    const intervalMs = Math.max(this.#floorMs, Math.min(paceMs, this.#changed.get(domain) ?? Infinity));
    this.#changed.delete(domain);
    const request = { process, ms, host, intervalMs, paceMs, reading: process.last };
    const isAgain = this.#again.delete(domain);
    const asked = this.#asked.get(at.key);
    if (asked === undefined) {
      this.#asked.set(at.key, { first: request, last: request, requests: 1 });
      return;
    }
    const { last } = asked;
    if (isAgain) {
      this.#past.push({ key: at.key, ...asked });
      asked.first = request;
      asked.requests = 0;
    }
    asked.last = request;
    asked.requests++;
    if (last.process === process) this.#report(request, request.ms - last.ms, 0);
    else if (process.last === null) this.#undecided.push([last, request]);
    else this.#compare(last, request);
  }

  /** Such a line is logged when a request follows: a log that has more would take memory for them. */
  #checkFollowed({ size }: { size: number }): void {
    if (size > this.#requests) throw new Error('it names more domains than requests');
  }

  #checkDomain(domain: number): void {
    if (!Number.isInteger(domain) || domain < 0 || domain >= this.#domains)
      throw new Error(`the site has no domain ${domain}`);
  }

  #read(reading: Reading): void {
    if (this.#process === null) throw new Error('a clock is read before its process begins');
    this.#process.first ??= reading;
    this.#process.last = reading;
    for (const [last, request] of this.#undecided.splice(0)) this.#compare(last, request);
  }

  #endProcess(): void {
    for (const [last, request] of this.#undecided.splice(0)) this.#compare(last, request);
    this.#process = null;
  }

  #compare(last: Request, request: Request): void {
    const [from, to] = [serverTimeOf(last), serverTimeOf(request)];
    this.#report(request, to.ms - from.ms, from.offMs + to.offMs);
  }

  #report(request: Request, ms: number, offMs: number): void {
    const { host, intervalMs } = request;
    this.#onGap({ ms, offMs, intervalMs: Math.floor(intervalMs), host, atMs: serverTimeOf(request).ms });
  }
}

/**
 * When a request was sent by the main server's clock, of the readings before and after it by the one that is nearer; by
 * the instance's clock, and Infinity off, where there is none.
 */
function serverTimeOf({ process: { startedMs, first, last }, ms, reading }: Request): { ms: number; offMs: number } {
  const before = reading ?? first;
  if (before === null || last === null) return { ms: startedMs + ms, offMs: Infinity };
  const offAt = (known: Reading): number => known.offMs + Math.abs(ms - known.ms) * DRIFT;
  const nearest = offAt(last) <= offAt(before) ? last : before;
  // Both ends are whole milliseconds.
  return { ms: startedMs + ms + nearest.aheadMs, offMs: offAt(nearest) + 1 };
}
