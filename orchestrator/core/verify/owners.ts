/**
 * Which epochs have asked each of many hosts, and from when to when: the first and the last of its requests say when an
 * epoch was the owner, and where it was granted the host again, its log says so. Memory: a span for each such time.
 */
import type { HostNumbers } from './host-numbers.ts';

/** When a request was sent: by the main server's clock, and by how much that may be off; Infinity if not known. */
export interface Moment {
  ms: number;
  offMs: number;
  /** The interval in force at its host. */
  intervalMs: number;
}

/** The requests of one epoch to one host while it had it. */
export interface Span {
  host: number;
  first: Moment;
  last: Moment;
  requests: number;
}

/** An owner of a host, and the one before it: negative milliseconds between them if both asked at once. */
export interface Handover {
  host: string;
  from: string;
  to: string;
  ms: number;
  offMs: number;
  intervalMs: number;
  /** When the later owner sent its first request. */
  atMs: number;
}

/** Numbers of a span, in this order. */
const FIELDS = 8;
const [HOST, EPOCH, FIRST, FIRST_OFF, FIRST_INTERVAL, LAST, LAST_OFF, LAST_INTERVAL] = [0, 1, 2, 3, 4, 5, 6, 7];

export class Owners {
  readonly #epochs: string[] = [];
  readonly #hosts: HostNumbers;
  /** In one piece: as objects of their own they would take three times the memory. */
  #spans = new Float64Array(FIELDS * 1_024);
  #count = 0;

  constructor(hosts: HostNumbers) {
    this.#hosts = hosts;
  }

  add(epoch: string, spans: Iterable<Span>): void {
    const number = this.#epochs.push(epoch) - 1;
    for (const { host, first, last } of spans) {
      const at = this.#count * FIELDS;
      if (at === this.#spans.length) {
        const more = new Float64Array(at * 2);
        more.set(this.#spans);
        this.#spans = more;
      }
      const ofFirst = [first.ms, first.offMs, first.intervalMs];
      this.#spans.set([host, number, ...ofFirst, last.ms, last.offMs, last.intervalMs], at);
      this.#count++;
    }
  }

  /** Each owner of a host with the one before it; those whose clocks are not known come last, and Infinity off. */
  *handovers(): Generator<Handover> {
    const spans = this.#spans;
    const valueOf = (span: number, field: number): number => spans[span * FIELDS + field]!;
    const isKnown = (span: number): boolean => Number.isFinite(valueOf(span, FIRST_OFF) + valueOf(span, LAST_OFF));
    const order = Uint32Array.from({ length: this.#count }, (_, span) => span).sort(
      (a, b) =>
        valueOf(a, HOST) - valueOf(b, HOST) ||
        Number(isKnown(b)) - Number(isKnown(a)) ||
        valueOf(a, FIRST) - valueOf(b, FIRST),
    );
    /** The one that was the owner for longest so far. */
    let before: number | null = null;
    for (const span of order) {
      if (before !== null && valueOf(before, HOST) === valueOf(span, HOST)) {
        // What lies between two times of one epoch is proved by its own log.
        const isOther = valueOf(before, EPOCH) !== valueOf(span, EPOCH);
        if (isOther)
          yield {
            host: this.#hosts.nameOf(valueOf(span, HOST)),
            from: this.#epochs[valueOf(before, EPOCH)]!,
            to: this.#epochs[valueOf(span, EPOCH)]!,
            ms: valueOf(span, FIRST) - valueOf(before, LAST),
            offMs: isKnown(span) ? valueOf(span, FIRST_OFF) + valueOf(before, LAST_OFF) : Infinity,
            intervalMs: Math.floor(Math.max(valueOf(before, LAST_INTERVAL), valueOf(span, FIRST_INTERVAL))),
            atMs: valueOf(span, FIRST),
          };
        if (valueOf(span, LAST) <= valueOf(before, LAST)) continue;
      }
      before = span;
    }
  }
}
