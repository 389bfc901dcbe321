/**
 * Resolves the names of a crawl of many hosts. `dns.lookup` runs in libuv's pool of four threads, where a few dead
 * names would delay every write of the journal by seconds; this asks the name servers from the event loop (c-ares).
 *
 * It asks for the name as it is, without the search domains of the machine.
 */
import { type LookupAddress, promises as dns } from 'node:dns';
import { isIP } from 'node:net';
import type { Clock } from '../../ports/clock.ts';
import type { Lookup } from './guarded-lookup.ts';
import { HostsFile, plainName } from './hosts-file.ts';

const MOST_UNDER_WAY = 16;

/** From when the look-up begins, whatever it has waited for its turn. */
const LIMIT_MS = 5_000;

/** The first repetition of a question; later ones wait longer. One lost packet costs a second, not the look-up. */
const REPEAT_MS = 1_000;
const REPEATS = 3;

const LEAST_KEPT_MS = 30_000;
const MOST_KEPT_MS = 600_000;

/** How long it is known that a name has no address. */
const NOT_FOUND_KEPT_MS = 600_000;

/**
 * A time-out or a SERVFAIL may be the fault of our name server or of the way to it, and then says nothing about the
 * name: an outage of a minute must not make every host that was due in it dead for ten.
 */
const FAULT_KEPT_MS = 30_000;

const MOST_NAMES = 20_000;

/** More addresses of one name are not kept: an answer may have thousands. */
const MOST_ADDRESSES = 16;

/** The longest name that DNS knows. */
const MOST_NAME_CHARS = 253;

type Family = 4 | 6;

/** Addresses, or why there are none. */
type Outcome = { addresses: readonly LookupAddress[] } | { code: string };

interface Kept {
  outcome: Outcome;
  untilMs: number;
}

export interface NameResolverOptions {
  clock: Clock;
  /** `address:port`; default: those of the machine. */
  servers?: readonly string[];
  /** Default: /etc/hosts. */
  hostsFile?: string;
}

export class NameResolver {
  readonly #clock: Clock;
  readonly #servers: readonly string[] | null;
  readonly #hosts: HostsFile;
  /** One for each look-up under way, because one can only be cancelled as a whole. */
  readonly #idle: dns.Resolver[] = [];
  #made = 0;
  readonly #waiting: ((resolver: dns.Resolver) => void)[] = [];
  /** Look-ups under way or waiting, by family and name. */
  readonly #asked = new Map<string, Promise<Outcome>>();
  /** The longest unchanged first. */
  readonly #known = new Map<string, { [family in Family]?: Kept }>();

  constructor({ clock, servers, hostsFile = '/etc/hosts' }: NameResolverOptions) {
    this.#clock = clock;
    this.#servers = servers ?? null;
    this.#hosts = new HostsFile(hostsFile, clock);
  }

  /** The names of which something is known. */
  get size(): number {
    return this.#known.size;
  }

  /** For sockets; `dns.lookup` with all addresses, except that IPv4 addresses come first. */
  readonly lookup: Lookup = (hostname, { family }, callback) => {
    const wanted = family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : 0;
    void this.#tell(hostname, wanted, callback);
  };

  /**
   * The addresses of a host; never none. Rejects with an error whose `code` is ENOTFOUND where there is none of this
   * family, otherwise the fault of the name servers, such as ETIMEOUT or ESERVFAIL.
   *
   * @param family 0 for both
   */
  async resolve(hostname: string, family: 0 | Family = 0): Promise<LookupAddress[]> {
    const literal = isIP(hostname);
    const own = literal === 0 ? await this.#ownAddresses(hostname) : [{ address: hostname, family: literal }];
    const families = family === 0 ? ([4, 6] as const) : [family];
    const outcomes: Outcome[] = own
      ? [{ addresses: own.filter((known) => families.some((wanted) => wanted === known.family)) }]
      : await Promise.all(families.map((wanted) => this.#ask(plainName(hostname), wanted)));
    const addresses = outcomes.flatMap((outcome) => ('addresses' in outcome ? outcome.addresses : []));
    if (addresses.length > 0) return addresses.map((known) => ({ ...known }));
    const codes = outcomes.flatMap((outcome) => ('code' in outcome ? [outcome.code] : []));
    // There is surely no address only if both families say so.
    const code = codes.find((other) => other !== 'ENOTFOUND') ?? 'ENOTFOUND';
    throw Object.assign(new Error(`look-up ${code} ${hostname.slice(0, MOST_NAME_CHARS)}`), { code, hostname });
  }

  async #tell(hostname: string, family: 0 | Family, callback: Parameters<Lookup>[2]): Promise<void> {
    let addresses: LookupAddress[];
    try {
      addresses = await this.resolve(hostname, family);
    } catch (error) {
      callback(error as NodeJS.ErrnoException, []);
      return;
    }
    callback(null, addresses);
  }

  /** What needs no question: names of the hosts file, and those that are none. Null where DNS is to be asked. */
  async #ownAddresses(hostname: string): Promise<readonly LookupAddress[] | null> {
    const name = plainName(hostname);
    return name === '' || name.length > MOST_NAME_CHARS ? [] : this.#hosts.addressesOf(name);
  }

  #ask(name: string, family: Family): Promise<Outcome> {
    const kept = this.#known.get(name)?.[family];
    if (kept !== undefined && kept.untilMs > this.#clock.monotonic()) return Promise.resolve(kept.outcome);
    const key = `${family} ${name}`;
    const asked =
      this.#asked.get(key) ??
      this.#inTurn((resolver) => this.#query(resolver, name, family)).finally(() => this.#asked.delete(key));
    this.#asked.set(key, asked);
    return asked;
  }

  async #inTurn<T>(work: (resolver: dns.Resolver) => Promise<T>): Promise<T> {
    const resolver = this.#free() ?? (await new Promise<dns.Resolver>((take) => this.#waiting.push(take)));
    try {
      return await work(resolver);
    } finally {
      const next = this.#waiting.shift();
      if (next) next(resolver);
      else this.#idle.push(resolver);
    }
  }

  #free(): dns.Resolver | null {
    const idle = this.#idle.pop();
    if (idle !== undefined || this.#made === MOST_UNDER_WAY) return idle ?? null;
    this.#made++;
    const made = new dns.Resolver({ timeout: REPEAT_MS, tries: REPEATS });
    if (this.#servers) made.setServers(this.#servers);
    return made;
  }

  async #query(resolver: dns.Resolver, name: string, family: Family): Promise<Outcome> {
    const ended = new AbortController();
    let isLate = false;
    const limit = async (): Promise<void> => {
      await this.#clock.sleep(LIMIT_MS, ended.signal);
      if (ended.signal.aborted) return;
      isLate = true;
      resolver.cancel();
    };
    void limit();
    try {
      const records = await (family === 4
        ? resolver.resolve4(name, { ttl: true })
        : resolver.resolve6(name, { ttl: true }));
      const keptMs = 1_000 * Math.min(...records.map(({ ttl }) => ttl));
      const addresses = records.slice(0, MOST_ADDRESSES).map(({ address }) => ({ address, family }));
      return this.#keep(name, [family], { addresses }, Math.min(Math.max(keptMs, LEAST_KEPT_MS), MOST_KEPT_MS));
    } catch (error) {
      const given = isLate ? 'ETIMEOUT' : ((error as NodeJS.ErrnoException).code ?? 'EAI_FAIL');
      const code = CODES[given] ?? given;
      // No such name, so none of IPv6 either. Not the other way round: some servers deny a name that has only IPv4
      // addresses when they are asked for IPv6 (RFC 4074).
      const families: Family[] = given === 'ENOTFOUND' && family === 4 ? [4, 6] : [family];
      return this.#keep(name, families, { code }, code === 'ENOTFOUND' ? NOT_FOUND_KEPT_MS : FAULT_KEPT_MS);
    } finally {
      ended.abort();
    }
  }

  #keep(name: string, families: readonly Family[], outcome: Outcome, forMs: number): Outcome {
    const known = this.#known.get(name) ?? {};
    for (const family of families) known[family] = { outcome, untilMs: this.#clock.monotonic() + forMs };
    this.#known.delete(name);
    this.#known.set(name, known);
    if (this.#known.size > MOST_NAMES) this.#known.delete(this.#known.keys().next().value!);
    return outcome;
  }
}

/** What `dns.lookup` says where c-ares says something else. */
const CODES: Readonly<Record<string, string>> = {
  ENODATA: 'ENOTFOUND',
  EBADNAME: 'ENOTFOUND',
  // It is the name server that refuses the connection, not the site.
  ECONNREFUSED: 'EAI_AGAIN',
};
