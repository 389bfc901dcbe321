/** The robots.txt of each origin of many hosts, as it was read here; some hold for origins of other hosts. */
import type { RobotsPolicy } from '../../shared/domain/robots-matcher.ts';

interface OriginRules {
  policy: RobotsPolicy;
  /** When it was read; wall clock. */
  atMs: number;
  /** The robots.txt of another host that holds in its place; null: none. */
  movedTo: string | null;
}

/** The robots.txt of another host that holds for an origin. */
interface ForeignRobots {
  /** The number of that host. */
  domain: number;
  url: string;
}

export class Origins {
  readonly #rules = new Map<number, Map<string, OriginRules>>();
  readonly #foreign = new Map<number, Map<string, ForeignRobots>>();
  /** By host: those with an origin for which its robots.txt holds. */
  readonly #under = new Map<number, Set<number>>();

  note(domain: number, origin: string, rules: OriginRules): void {
    const ofHost = this.#rules.get(domain) ?? new Map<string, OriginRules>();
    this.#rules.set(domain, ofHost.set(origin, rules));
  }

  /** The robots.txt of another host holds for this origin. */
  noteForeign(domain: number, origin: string, robots: ForeignRobots): void {
    const ofHost = this.#foreign.get(domain) ?? new Map<string, ForeignRobots>();
    this.#foreign.set(domain, ofHost.set(origin, robots));
    this.#under.set(robots.domain, (this.#under.get(robots.domain) ?? new Set()).add(domain));
  }

  /** Null where its own robots.txt holds. */
  foreignOf(domain: number, origin: string): ForeignRobots | null {
    return this.#foreign.get(domain)?.get(origin) ?? null;
  }

  /** The hosts under the robots.txt of another one. */
  under(domain: number): number[] {
    return [...(this.#under.get(domain) ?? [])];
  }

  /** The hosts whose robots.txt holds for this one. */
  over(domain: number): number[] {
    return [...(this.#foreign.get(domain)?.values() ?? [])].map((robots) => robots.domain);
  }

  /** The rules that hold for an origin; undefined before they were read. */
  rulesOf(domain: number, origin: string): OriginRules | undefined {
    const foreign = this.foreignOf(domain, origin);
    return foreign === null
      ? this.#rules.get(domain)?.get(origin)
      : this.#rules.get(foreign.domain)?.get(new URL(foreign.url).origin);
  }

  /** Nothing is asked of the host any more. */
  forget(domain: number): void {
    this.#rules.delete(domain);
    for (const over of this.over(domain)) this.#under.get(over)?.delete(domain);
    this.#foreign.delete(domain);
  }
}
