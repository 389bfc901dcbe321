/** What the hosts of a world were asked for and when, and the questions that tests put to it. */
import { hostGroupOf } from '../../../shared/domain/host-key.ts';

export interface HostRequest {
  /** The name in the Host header; of a host that the world does not have too. */
  host: string;
  /** Arrival in monotonic milliseconds of the world. */
  atMs: number;
  /** The same moment by the clock of the machine. */
  wallMs: number;
  method: string;
  /** As sent, with the query. */
  path: string;
  /** Source address. */
  from: string;
  /** The address that was connected to. */
  to: string;
  userAgent: string;
  /** null until the exchange is over; 0 when it ended without an answer. */
  status: number | null;
  /** When the last byte was sent, or the connection ended; null until then. */
  endMs: number | null;
}

const groupOf = ({ host }: HostRequest): string => hostGroupOf({ hostname: host });
const isRobots = ({ path }: HostRequest): boolean => path === '/robots.txt';
const startsOf = (requests: readonly HostRequest[]): number[] => requests.map(({ atMs }) => atMs);

/** null with fewer than two. */
function smallestGap(startsMs: readonly number[]): number | null {
  return startsMs.length < 2 ? null : Math.min(...startsMs.slice(1).map((atMs, i) => atMs - startsMs[i]!));
}

export class HostLedger {
  /** In order of arrival. */
  readonly requests: readonly HostRequest[];
  /** By registrable domain; made when they are first looked for. */
  #byGroup: ReadonlyMap<string, HostRequest[]> | null = null;

  constructor(requests: readonly HostRequest[]) {
    this.requests = requests;
  }

  /** The hosts that were asked, by registrable domain. */
  groups(): string[] {
    return [...this.#groups().keys()];
  }

  requestsOf(host: string): HostRequest[] {
    return this.requests.filter((request) => request.host === host);
  }

  /** Without those for robots.txt. */
  pagesOf(host: string): HostRequest[] {
    return this.requestsOf(host).filter((request) => !isRobots(request));
  }

  robotsOf(host: string): HostRequest[] {
    return this.requestsOf(host).filter(isRobots);
  }

  /** Between the arrivals of any two requests to the names of a registrable domain; null with fewer than two. */
  smallestGapOf(group: string): number | null {
    return smallestGap(startsOf(this.#ofGroup(group)));
  }

  /** The registrable domains that were asked sooner than this after the request before. */
  groupsFasterThan(gapMs: number): { group: string; gapMs: number }[] {
    return this.groups().flatMap((group) => {
      const own = this.smallestGapOf(group);
      return own !== null && own < gapMs ? [{ group, gapMs: own }] : [];
    });
  }

  /** Pages that were asked for before the first robots.txt of their host, or before it was over. */
  pagesBeforeRobots(host?: string): HostRequest[] {
    const knownMs = new Map<string, number>();
    for (const { host: name, endMs } of this.requests.filter(isRobots))
      if (endMs !== null) knownMs.set(name, Math.min(knownMs.get(name) ?? Infinity, endMs));
    return this.requests.filter(
      (request) =>
        !isRobots(request) &&
        (host === undefined || request.host === host) &&
        request.atMs < (knownMs.get(request.host) ?? Infinity),
    );
  }

  /** The source addresses that asked a registrable domain, in order; one that comes back is there twice. */
  sourcesOf(group: string): string[] {
    const sources = this.#ofGroup(group).map(({ from }) => from);
    return sources.filter((from, i) => from !== sources[i - 1]);
  }

  /** Between arrivals at one address of the world, whatever the name; with `from`, of this source alone. */
  smallestGapAt(address: string, from?: string): number | null {
    return smallestGap(startsOf(this.#at(address, from)));
  }

  /** The most requests that were under way at one address of the world at the same time. */
  mostUnderWayAt(address: string, from?: string): number {
    const own = this.#at(address, from);
    return Math.max(
      0,
      ...own.map(({ atMs }) => own.filter((other) => other.atMs <= atMs && (other.endMs ?? Infinity) > atMs).length),
    );
  }

  #groups(): ReadonlyMap<string, HostRequest[]> {
    return (this.#byGroup ??= Map.groupBy(this.requests, groupOf));
  }

  #ofGroup(group: string): HostRequest[] {
    return this.#groups().get(group) ?? [];
  }

  #at(address: string, from: string | undefined): HostRequest[] {
    return this.requests.filter(({ to, from: source }) => to === address && (from ?? source) === source);
  }
}
