/**
 * When a run ends, as a distribution. Boot and page times are lognormal; one part of their variance is common to the
 * whole run (a slow shop, a slow day of EC2), the rest is independent per instance.
 *
 * Monte Carlo, but only over the common part: given that, the instances are independent, so the probability that all
 * finish by t is a product of known factors and is computed, not sampled. 200 draws then distinguish 99.9 % from 99.8
 * %, for three instances as for three thousand, in well under a millisecond.
 */
import { easingMs } from '../../../shared/domain/pacing.ts';
import type { Random } from '../../../shared/ports/random.ts';
import {
  largestChunk,
  lastLaunchMs,
  lostToRotation,
  PAGE_OVERHEAD_MS,
  rotationsFor,
  shareOf,
  type Work,
} from './fleet-sums.ts';
import { momentsAbove, normalQuantile, normalTail, sigmaOf } from './lognormal.ts';
import type { PlanInput } from './plan.ts';

const DRAWS = 200;
/** Maximum number of groups of launch positions; each group counts as launched at its latest position. */
const GROUPS = 32;
/** How much longer than the median page, which alone is known, a shop's slowest twentieth takes: about three times. */
export const PAGE_P95_FACTOR = 3;
/** Share of the variance that is common to the run. */
export const COMMON = 0.25;

/** What is common to one simulated run, as three numbers: two standard normals and a uniform. */
export interface Day {
  boot: number;
  pages: number;
  /** Quantile of the slowest instance's page times. */
  luck: number;
}

/** Draws the days used to judge every fleet of a plan. */
export const drawDays = (random: Random): Day[] =>
  Array.from({ length: DRAWS }, () => ({ boot: normal(random), pages: normal(random), luck: uniform(random) }));

interface Draw {
  bootMs: number;
  /** Mean time per product in this run, and its spread. */
  gapMean: number;
  gapSd: number;
  lastMs: number;
  luck: number;
}

export class FinishModel {
  readonly #input: PlanInput;
  readonly #work: Work;
  readonly #draws: Draw[];
  readonly #bootSigma: number;
  /** Crawl times of each draw as far as asked for: a search for an end asks for those of one fleet again and again. */
  #slowest: { instances: number; ms: number[] } = { instances: 0, ms: [] };

  constructor(input: PlanInput, work: Work, days: readonly Day[]) {
    this.#input = input;
    this.#work = work;
    const bootSigma = sigmaOf(input.bootP50Ms, input.bootP95Ms);
    const pageSigma = sigmaOf(1, PAGE_P95_FACTOR);
    this.#bootSigma = bootSigma * Math.sqrt(1 - COMMON);
    // The products of an instance fall on the domains by chance: a binomial share, relative to its mean and per
    // product.
    const unevenness = work.isDomainBound ? (1 - work.busiest.share) / work.busiest.share : 0;
    this.#draws = days.map((day) => {
      const pageMs = input.pageP50Ms * Math.exp(pageSigma * Math.sqrt(COMMON) * day.pages);
      const ownSigma = pageSigma * Math.sqrt(1 - COMMON);
      const overheadMs = work.pageShare * PAGE_OVERHEAD_MS;
      const gap = momentsAbove(Math.max(0, work.leastMs - overheadMs), work.pageShare * pageMs, ownSigma);
      const requestMean = gap.mean + overheadMs;
      const { requestsEach } = work;
      const gapMean = requestMean * requestsEach + work.extraMs;
      return {
        bootMs: input.bootP50Ms * Math.exp(bootSigma * Math.sqrt(COMMON) * day.boot),
        gapMean,
        gapSd: Math.sqrt(gap.variance * requestsEach + gapMean ** 2 * unevenness),
        lastMs: requestMean * Math.max(0, requestsEach - 1) + pageMs + PAGE_OVERHEAD_MS,
        luck: day.luck,
      };
    });
  }

  /**
   * Share of runs with n instances that end by then.
   * @param enough the caller does not care about exact values below it: the search then stops early and returns some
   * value below it
   * @param most nor about exact values from here on
   */
  chanceBy(endMs: number, instances: number, enough = 0, most = Infinity): number {
    if (this.#work.products === 0) return 1;
    const { each } = shareOf(this.#work.products, instances, largestChunk(this.#input, this.#work));
    if (this.#slowest.instances !== instances) this.#slowest = { instances, ms: [] };
    const { ms } = this.#slowest;
    let sum = 0;
    for (const [i, draw] of this.#draws.entries()) {
      const left = this.#draws.length - i;
      if (sum + left < enough * this.#draws.length || sum >= most * this.#draws.length) break;
      const startByMs = endMs - this.#input.tailMs - (ms[i] ??= this.#slowestMs(draw, each, instances));
      const chance = startByMs < this.#input.balancerMs ? 0 : this.#chanceAllStarted(draw, startByMs, instances);
      sum += chance * this.#chanceOfLongest(draw, endMs, instances);
    }
    return sum / this.#draws.length;
  }

  /** The time by which this share of runs has ended. */
  endMs(share: number, instances: number): number {
    if (this.#work.products === 0) return 0;
    let low = 0;
    let high = 1_000 + this.#input.balancerMs + this.#input.bootP95Ms + this.#work.paceMs;
    while (this.chanceBy(high, instances, share, share) < share) [low, high] = [high, high * 2];
    // Precision: a millisecond in a short run, a millionth in a long one.
    while (high - low > Math.max(1, high / 1e6)) {
      const middle = (low + high) / 2;
      if (this.chanceBy(middle, instances, share, share) < share) low = middle;
      else high = middle;
    }
    return Math.ceil(high);
  }

  /** Mean life of an instance, from its launch to its rows in the result table. */
  meanLifeMs(instances: number): number {
    const launchMs = lastLaunchMs(instances) / 2;
    const sigma = sigmaOf(this.#input.bootP50Ms, this.#input.bootP95Ms);
    const bootMs = this.#input.bootP50Ms * Math.exp(sigma ** 2 / 2);
    const gapMs = this.#draws.reduce((sum, d) => sum + d.gapMean, 0) / this.#draws.length;
    const waitMs = Math.max(launchMs + bootMs, this.#input.balancerMs) - launchMs;
    const workMs = (this.#work.products / Math.max(1, instances)) * gapMs;
    // Each of a fleet that crawls many hosts has a long one.
    const crawlMs = Math.max(workMs, this.#work.longestMs);
    // A successor's boot is billed like the first one.
    const rotationsMs = rotationsFor(this.#input, crawlMs, instances) * (bootMs + this.#input.tailMs);
    return waitMs + crawlMs + rotationsMs + this.#input.tailMs;
  }

  /** Crawl time including the rotations that the slowest of n instances needs on the way. */
  #slowestMs(draw: Draw, each: number, instances: number): number {
    const crawlMs = this.#slowestCrawlMs(draw, each, instances) + easingMs(this.#work.easedMs, each);
    return crawlMs + lostToRotation(this.#input, crawlMs, instances);
  }

  /** The slowest of n sums of independent pages, approximated as a normal quantile at the n-th root of `luck`. */
  #slowestCrawlMs(draw: Draw, each: number, instances: number): number {
    const typical = (each - 1) * draw.gapMean + draw.lastMs;
    if (draw.gapSd === 0) return typical;
    const { domains, isDomainBound } = this.#work;
    const out = normalQuantile(draw.luck ** (1 / (instances * (isDomainBound ? domains.length : 1))));
    const fastest = (each - 1) * this.#work.paceMs + draw.lastMs;
    return Math.max(fastest, typical + out * draw.gapSd * Math.sqrt(Math.max(1, each - 1)));
  }

  #chanceAllStarted(draw: Draw, byMs: number, instances: number): number {
    // The last one launched is the likeliest to be late; mostly its chance decides it, or is too small to count.
    const most = this.#chanceBootTakesLonger(draw, byMs - lastLaunchMs(instances));
    if (most >= 1) return 0;
    if (instances * most < NEGLIGIBLE) return 1;
    const groups = Math.min(GROUPS, instances);
    let logChance = 0;
    for (let group = 1; group <= groups; group++) {
      const last = Math.ceil((instances * group) / groups);
      const size = last - Math.ceil((instances * (group - 1)) / groups);
      const bootMs = byMs - lastLaunchMs(last);
      const late = this.#chanceBootTakesLonger(draw, bootMs);
      if (late >= 1) return 0;
      logChance += size * Math.log1p(-late);
    }
    return Math.exp(logChance);
  }

  /** The chance that the longest of many hosts ends by then: the first instance that is up begins with it. */
  #chanceOfLongest(draw: Draw, endMs: number, instances: number): number {
    const { longestMs } = this.#work;
    if (longestMs === 0) return 1;
    const byMs = endMs - this.#input.tailMs - longestMs;
    if (byMs < this.#input.balancerMs) return 0;
    return 1 - this.#chanceBootTakesLonger(draw, byMs - lastLaunchMs(instances)) ** instances;
  }

  #chanceBootTakesLonger(draw: Draw, ms: number): number {
    if (ms <= 0) return 1;
    if (this.#bootSigma === 0 || draw.bootMs <= 0) return ms < draw.bootMs ? 1 : 0;
    return normalTail(Math.log(ms / draw.bootMs) / this.#bootSigma);
  }
}

/** A chance too small to count: one minus it is 1 to a computer. */
const NEGLIGIBLE = Number.EPSILON / 16;

/** A random number between 0 and 1, never either of them, where the quantiles are infinite. */
const uniform = (random: Random): number => Math.min(1 - 1e-9, Math.max(1e-9, random.next()));

const normal = (random: Random): number => normalQuantile(uniform(random));
