/**
 * The gaps between the requests of one address, as its instances logged them. Requests of one process are compared by
 * its own clock, those of different processes by the main server's, as far as the replies to heartbeats have shown it.
 * Memory: one request for each domain.
 */
import type { LogLine } from '../../../shared/wire/request-log.ts';

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
  startedMs: number;
  /** The last reading of the main server's clock; null before the first. */
  reading: { ms: number; aheadMs: number; offMs: number } | null;
}

interface Request {
  process: Process;
  /** Since the process began. */
  ms: number;
  host: string;
  intervalMs: number;
}

/** How far two clocks drift apart at most: an NTP client slews by 500 ppm, without one oscillators are nearer. */
const DRIFT = 5e-4;

export class Gaps {
  readonly #floorMs: number;
  readonly #domains: number;
  readonly #onGap: (gap: Gap) => void;
  readonly #last = new Map<number, Request>();
  /** The first requests of a process whose clock is not known yet, each with the one before it. */
  #undecided: [Request, Request][] = [];
  #process: Process | null = null;
  #number = -1;
  /** Of the object being read. */
  readonly #hosts = new Map<number, { domain: number; name: string }>();
  readonly #paces = new Map<number, number>();
  /** The domains whose interval has changed since their last request. */
  readonly #changed = new Map<number, number>();

  /**
   * @param floorMs the least interval, whatever the logs say
   * @param domains of the site: a log that names another one would take memory for it
   */
  constructor({ floorMs, domains }: { floorMs: number; domains: number }, onGap: (gap: Gap) => void) {
    this.#floorMs = floorMs;
    this.#domains = domains;
    this.#onGap = onGap;
  }

  /** The next object of the log begins. */
  beginObject(): void {
    this.#hosts.clear();
  }

  /** The log of another instance at this address begins. */
  beginInstance(): void {
    this.#endProcess();
    this.#number = -1;
    this.#paces.clear();
    this.#changed.clear();
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
        if (line.number === this.#number && line.startedMs === this.#process?.startedMs) return false;
        this.#endProcess();
        this.#number = line.number;
        this.#process = { startedMs: line.startedMs, reading: null };
        return false;
      case 'clock':
        this.#read({ ms: line.ms, aheadMs: line.aheadMs, offMs: line.roundTripMs / 2 });
        return false;
      case 'host':
        this.#checkDomain(line.domain);
        this.#hosts.set(line.host, { domain: line.domain, name: line.name });
        return false;
      case 'pace': {
        this.#checkDomain(line.domain);
        const before = this.#paces.get(line.domain);
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

  #sent(ms: number, number: number): void {
    const process = this.#process;
    const at = this.#hosts.get(number);
    if (process === null || at === undefined) throw new Error('a request comes before its process or host');
    const { domain, name: host } = at;
    // A request may have had its turn just before the interval changed.
    const paceMs = Math.min(this.#paces.get(domain) ?? 0, this.#changed.get(domain) ?? Infinity);
    this.#changed.delete(domain);
    const request = { process, ms, host, intervalMs: Math.max(this.#floorMs, paceMs) };
    const last = this.#last.get(domain);
    this.#last.set(domain, request);
    if (last === undefined) return;
    if (last.process === process) this.#report(request, request.ms - last.ms, 0);
    else if (process.reading === null) this.#undecided.push([last, request]);
    else this.#compare(last, request);
  }

  #checkDomain(domain: number): void {
    if (!Number.isInteger(domain) || domain < 0 || domain >= this.#domains)
      throw new Error(`the site has no domain ${domain}`);
  }

  #read(reading: NonNullable<Process['reading']>): void {
    if (this.#process === null) throw new Error('a clock is read before its process begins');
    this.#process.reading = reading;
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

/** When a request was sent by the main server's clock; by the instance's, and Infinity off, where that is not known. */
function serverTimeOf({ process: { startedMs, reading }, ms }: Request): { ms: number; offMs: number } {
  if (reading === null) return { ms: startedMs + ms, offMs: Infinity };
  // Both ends are whole milliseconds.
  return { ms: startedMs + ms + reading.aheadMs, offMs: reading.offMs + Math.abs(ms - reading.ms) * DRIFT + 1 };
}
