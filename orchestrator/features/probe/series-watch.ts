/** Observes the run of one series: how many requests came before a ban, and how long the ban lasted. */
import { lastRightMs } from '../../core/decide/ban-policy.ts';
import { isGivenUp } from '../../core/model/instance-state.ts';
import type { AddressIncident, InstanceRecord } from '../../core/model/stores.ts';
import type { World } from '../../core/model/world.ts';
import type { Ban, ProbeLimits, Series, SeriesResult } from './series.ts';

/** Times by the main server's clock. */
interface SeenBan extends Pick<Ban, 'rule' | 'afterRequests'> {
  /** When it was recognised: one or two requests after the first refusal. */
  knownMs: number;
  /** The last page before it; null without one. */
  lastRightMs: number | null;
  lastRefusedMs: number;
  /** The first page after it; null before that. */
  overMs: number | null;
}

export class SeriesWatch {
  readonly #series: Series;
  readonly #maxBanMs: number;
  #address: string | null = null;
  #requests = 0;
  #ban: SeenBan | null = null;
  #isDone = false;

  constructor(series: Series, { maxBanMs }: Pick<ProbeLimits, 'maxBanMs'>) {
    this.#series = series;
    this.#maxBanMs = maxBanMs;
  }

  /** Takes the world as each observation finds it. True when the series must end. */
  note({ nowMs, run, fleet }: World): boolean {
    // A slot whose first launches failed counts from the instance that sent the first request.
    const record = fleet.all.find(({ progress }) => (progress?.requests ?? 0) > 0);
    if (record?.progress == null) return false;
    this.#address = record.address;
    this.#requests = fleet.all.reduce((sum, { progress }) => sum + (progress?.requests ?? 0), 0);
    const { stored, gone, failed, restMs } = record.progress;
    const hasAll = this.#requests >= this.#series.requests || stored + gone + failed >= run.planned;
    if (hasAll) this.#isDone = true;
    if (record.incident !== null) this.#noteIncident(record, record.incident);
    else if (restMs > 0 && this.#ban === null) this.#noteRest(record, restMs);
    // Its successor has another address, which would hide the ban of this one.
    if (isGivenUp(record) || this.#requests >= this.#series.maxRequests) return true;
    if (this.#ban === null) return this.#isDone;
    const { knownMs, overMs } = this.#ban;
    return !this.#series.measuresBan || overMs !== null || nowMs - knownMs > this.#maxBanMs;
  }

  result(): SeriesResult {
    const { intervalMs } = this.#series;
    const isComplete = this.#isDone || this.#ban !== null;
    const ban = this.#ban && toBan(this.#ban);
    return { intervalMs, address: this.#address, requests: this.#requests, ban, isComplete };
  }

  #noteIncident(record: InstanceRecord, { rule, atMs, overAtMs }: AddressIncident): void {
    const right = lastRightMs(record);
    this.#ban ??= { ...this.#begin(record, atMs), rule, lastRefusedMs: atMs };
    const ban = this.#ban;
    ban.lastRefusedMs = Math.max(ban.lastRefusedMs, atMs);
    if (overAtMs !== null && right !== null && right > ban.lastRefusedMs) ban.overMs ??= right;
  }

  /** The site has asked the address to wait: it refuses it for a time that it names. */
  #noteRest(record: InstanceRecord, restMs: number): void {
    const begin = this.#begin(record, record.lastHeartbeatAtMs!);
    const overMs = begin.knownMs + restMs;
    this.#ban = { ...begin, rule: 'retry-after', lastRefusedMs: overMs, overMs };
  }

  #begin(record: InstanceRecord, knownMs: number): Omit<SeenBan, 'rule' | 'lastRefusedMs'> {
    const right = lastRightMs(record);
    const { requests } = record.progress!;
    // Since the last right page it has sent one request each interval, and all of them were refused.
    const refused = right === null ? requests : Math.floor((knownMs - right) / this.#series.intervalMs);
    return { afterRequests: Math.max(0, requests - Math.max(1, refused)), knownMs, lastRightMs: right, overMs: null };
  }
}

function toBan({ rule, afterRequests, knownMs, lastRightMs: rightMs, lastRefusedMs, overMs }: SeenBan): Ban {
  const maxMs = overMs === null ? null : overMs - (rightMs ?? knownMs);
  return { rule, afterRequests, minMs: lastRefusedMs - knownMs, maxMs };
}
