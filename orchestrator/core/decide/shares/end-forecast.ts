/** When the fleet will probably finish. Pure. */
import { LOSS } from '../slot-attempts.ts';
import type { Observed } from '../../model/world.ts';
import { waterFillLevel, type Worker, type Workers, workersOf } from './workers.ts';
import { drainAtMs } from '../../model/run-deadlines.ts';
import type { EndForecast, WorkerEnd } from '../../model/forecast.ts';
import type { WaitingHosts } from '../../model/stores.ts';

/** Spread of a paced address, which is as exact as its timers. */
const PACED_SPREAD = 0.01;
/** Page times that are longer than the interval: standard deviation of one, as a share of the mean. */
const PAGE_VARIATION = 0.5;
/** 95 % quantile of the normal distribution. */
const Z95 = 1.645;

/** @param given with further instances assumed to be launched now */
export function forecastEnd(world: Observed, given: Workers = workersOf(world)): EndForecast {
  const end = workEnd(world, given);
  const { byHost } = world.work;
  return byHost === undefined ? end : noSoonerThanHosts(world, byHost, given, end);
}

/** However many instances there are, each of many hosts takes its time at its own pace. */
function noSoonerThanHosts(
  { nowMs }: Observed,
  { longestMs }: WaitingHosts,
  { workers }: Workers,
  end: EndForecast,
): EndForecast {
  const endsMs = workers.map(({ hostsEndMs }) => hostsEndMs);
  const lastMs = Math.max(longestMs > 0 ? nowMs + longestMs : 0, ...endsMs);
  const late = (ms: number): number => ms + Math.max(0, ms - nowMs) * PACED_SPREAD;
  return {
    p50Ms: end.p50Ms === null ? null : Math.max(end.p50Ms, lastMs),
    p95Ms: end.p95Ms === null ? null : Math.max(end.p95Ms, late(lastMs)),
    workers: end.workers.map((own, i) => {
      const hostsEndMs = endsMs[i] ?? 0;
      return { ...own, p50Ms: Math.max(own.p50Ms, hostsEndMs), p95Ms: Math.max(own.p95Ms, late(hostsEndMs)) };
    }),
  };
}

/** When the work is done, were it only that. */
function workEnd(world: Observed, given: Workers): EndForecast {
  const { workers, unassigned, chunkSize } = given;
  const takers = workers.filter((p) => p.canTake);
  const level = (start: (p: Worker) => number): number => {
    if (unassigned <= 0) return 0;
    const vessels = takers.map((p) => ({ paceMs: p.paceMs, endMs: start(p) + p.pending * p.paceMs }));
    return waterFillLevel(vessels, unassigned);
  };
  const p50Level = level((p) => p.startMs);
  const p95Level = level((p) => p.startP95Ms);
  let working = 0;
  let lastP50Ms = world.nowMs;
  let lastP95Ms = world.nowMs;
  const ends = workers.map((worker): WorkerEnd => {
    const isTaking = worker.canTake && worker.endMs < p50Level;
    const p50Ms = isTaking ? p50Level : worker.endMs;
    const expectedMs = Math.max(
      worker.canTake ? p95Level : 0,
      worker.pending > 0 ? worker.startP95Ms + worker.pending * worker.paceMs : world.nowMs,
    );
    const p95Ms = expectedMs + spreadMs(worker, expectedMs - world.nowMs);
    if (worker.pending > 0 || (unassigned > 0 && worker.canTake)) {
      working++;
      lastP50Ms = Math.max(lastP50Ms, p50Ms);
      lastP95Ms = Math.max(lastP95Ms, p95Ms);
    }
    return { slot: worker.slot, epoch: worker.epoch, p50Ms, p95Ms };
  });
  if (unassigned > 0 && takers.length === 0) return { p50Ms: null, p95Ms: null, workers: ends };
  // While all end in time no chunks are transferred: the last worker determines the end.
  if (lastP95Ms <= drainAtMs(world.run)) {
    const marginMs = lossMarginMs(world, lastP50Ms, working);
    return { p50Ms: lastP50Ms, p95Ms: lastP95Ms + marginMs, workers: ends };
  }
  const even = (startOf: (p: Worker) => number): number => evenEndMs(takers, startOf, unassigned, chunkSize);
  const evenP50Ms = even((p) => p.startMs);
  const p50Ms = Math.min(lastP50Ms, evenP50Ms);
  const evenP95Ms = even((p) => p.startP95Ms);
  const spread = takers.reduce((most, p) => Math.max(most, spreadMs(p, evenP95Ms - world.nowMs)), 0);
  const p95Ms = Math.min(lastP95Ms, evenP95Ms + spread) + lossMarginMs(world, p50Ms, working);
  return { p50Ms, p95Ms: Math.max(p50Ms, p95Ms), workers: ends };
}

/** When all finish if late workers transfer chunks to others, as they do before anything is lost; whole chunks only. */
function evenEndMs(takers: readonly Worker[], startOf: (p: Worker) => number, pool: number, chunkSize: number): number {
  const vessels = takers.map((p) => ({ endMs: startOf(p), paceMs: p.paceMs }));
  const slowest = takers.reduce((most, p) => Math.max(most, p.paceMs), 0);
  const work = pool + takers.reduce((sum, p) => sum + p.pending, 0);
  return waterFillLevel(vessels, work) + chunkSize * slowest;
}

/** By how much the time for `workMs` of work may be off, in 19 of 20 cases. */
export function spreadMs(worker: Pick<Worker, 'paceMs' | 'isSlow'>, workMs: number): number {
  if (workMs <= 0) return 0;
  if (!worker.isSlow) return workMs * PACED_SPREAD;
  const pages = Math.max(1, workMs / worker.paceMs);
  return workMs * PACED_SPREAD + (workMs * Z95 * PAGE_VARIATION) / Math.sqrt(pages);
}

/** It ended because nothing was left for it, or because its address was rotated. */
const isMeant = (reason: string): boolean => reason === LOSS.notNeeded || reason === LOSS.rotated;

/**
 * What further losses will cost the other workers, at the rate of losses so far. One loss in the first minutes is no
 * rate: the rate is taken over the elapsed time plus the length of the run.
 */
function lossMarginMs(world: Observed, endMs: number, working: number): number {
  const lost = world.fleet.all.filter((r) => r.instanceId !== null && r.reason !== null && !isMeant(r.reason));
  const { startedAtMs, deadlineAtMs } = world.run;
  if (lost.length === 0 || working === 0) return 0;
  const overMs = world.nowMs - startedAtMs + (deadlineAtMs - startedAtMs);
  const leftMs = Math.max(0, endMs - world.nowMs);
  const expected = Math.min(working, (lost.length * leftMs) / overMs);
  // On average half of its work is left, and the loss is noticed only after `lostMs`.
  return (expected * leftMs) / 2 / working + Math.min(1, expected) * world.limits.lostMs;
}
