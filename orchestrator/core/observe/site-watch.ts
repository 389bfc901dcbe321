/**
 * Whether the site is down, from the counters of the instances: more than half of the fleet's last requests got no
 * connection, no answer or a server error, or robots.txt cannot be read. While it is, the pace is halved step by step,
 * and restored step by step when pages come again.
 */
import { epochNumber } from '../../../shared/domain/epoch-id.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { SiteState } from '../model/world.ts';
import { unreadableRobots } from '../model/robots-pace.ts';

/** Requests that are judged together. */
const WINDOW = 50;
/** Requests at the new pace that decide the next step. */
const STEP_REQUESTS = 3;
/** The longest interval, as a multiple of the planned one. */
const SLOWEST = 8;
/** Heartbeats after which an order has reached every instance that reports. */
const ORDER_HEARTBEATS = 2;

interface Tries {
  tried: number;
  unavailable: number;
}

interface Counts extends Tries {
  served: number;
}

interface SiteView {
  fleet: { all: readonly Pick<InstanceRecord, 'slot' | 'epoch' | 'progress'>[] };
  robots: RobotsPolicy | null;
  limits: { heartbeatMs: number };
}

export class SiteWatch {
  /** What each instance had counted at the last look, by `epochNumber`. */
  readonly #known = new Map<number, Counts>();
  /** Newest last. */
  #recent: Tries[] = [];
  #sinceServed: Tries = { tried: 0, unavailable: 0 };
  #slowdown = 1;
  #steppedAtMs = -Infinity;
  #seen = '';
  #hasLooked = false;

  /** @param nowMs by the monotonic clock */
  look(view: SiteView, nowMs: number): SiteState {
    const news = this.#news(view.fleet.all);
    if (news.tried > 0) this.#keep(news);
    this.#sinceServed = news.served > 0 ? { tried: 0, unavailable: 0 } : sumOf([this.#sinceServed, news]);
    const window = sumOf(this.#recent);
    const isDue = nowMs - this.#steppedAtMs >= ORDER_HEARTBEATS * view.limits.heartbeatMs;
    if (this.#slowdown === 1) {
      if (window.unavailable > Math.max(WINDOW, window.tried) / 2) this.#step(2, window, nowMs);
    } else if (isDue && window.tried >= STEP_REQUESTS) {
      const isBad = window.unavailable > window.tried / 2;
      this.#step(isBad ? Math.min(SLOWEST, this.#slowdown * 2) : this.#slowdown / 2, window, nowMs);
    }
    const { robots } = view;
    const slowdown = this.#slowdown;
    const { tried, unavailable } = this.#sinceServed;
    const suspicion = unavailable > tried / 2 ? inWords(this.#sinceServed) : null;
    if (robots?.access === 'none') return { slowdown, detail: unreadableRobots(robots), suspicion };
    return { slowdown, detail: slowdown === 1 ? null : this.#seen, suspicion };
  }

  /** Requests at the old pace say nothing about the new one. */
  #step(slowdown: number, window: Tries, nowMs: number): void {
    if (window.unavailable > window.tried / 2) this.#seen = inWords(window);
    this.#slowdown = slowdown;
    this.#steppedAtMs = nowMs;
    this.#recent = [];
  }

  #keep(news: Tries): void {
    this.#recent.push(news);
    let { tried } = sumOf(this.#recent);
    let old = 0;
    for (const one of this.#recent) {
      tried -= one.tried;
      if (tried < WINDOW) break;
      old++;
    }
    this.#recent.splice(0, old);
  }

  /** What all instances have counted since the last call. A counter that was reset counts from there. */
  #news(instances: SiteView['fleet']['all']): Counts {
    const news = { tried: 0, unavailable: 0, served: 0 };
    for (const instance of instances) {
      const { progress } = instance;
      // Instances of earlier versions do not send it.
      if (progress === null || !(progress.tried > 0)) continue;
      const name = epochNumber(instance);
      const before = this.#known.get(name);
      const { tried, unavailable, served } = progress;
      if (before?.tried === tried && before.served === served && before.unavailable === unavailable) continue;
      this.#known.set(name, { tried, unavailable, served });
      // Counts from before this main server started are only a baseline.
      if (before === undefined ? !this.#hasLooked : tried < before.tried) continue;
      news.tried += tried - (before?.tried ?? 0);
      news.unavailable += Math.max(0, unavailable - (before?.unavailable ?? 0));
      news.served += Math.max(0, served - (before?.served ?? 0));
    }
    this.#hasLooked = true;
    return news;
  }
}

const inWords = ({ tried, unavailable }: Tries): string =>
  `${unavailable} of the last ${tried} requests got a server error, a time-out or no connection`;

const sumOf = (all: readonly Tries[]): Tries =>
  all.reduce((sum, t) => ({ tried: sum.tried + t.tried, unavailable: sum.unavailable + t.unavailable }), {
    tried: 0,
    unavailable: 0,
  });
