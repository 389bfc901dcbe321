/**
 * What is drawn at random in a simulated run: boots, pages, and which instance meets which fate. The same model as the
 * plan's.
 */
import type { Random } from '../../../shared/ports/random.ts';
import { COMMON, PAGE_P95_FACTOR } from '../plan/finish-model.ts';
import { PAGE_OVERHEAD_MS, workOf } from '../plan/fleet-sums.ts';
import { momentsAbove, normalQuantile, sigmaOf } from '../plan/lognormal.ts';
import type { Pace } from './instance/site.ts';
import { OUTSIDE, type Scenario } from './scenario.ts';

/** The course of an instance from its launch on. */
export interface Fate {
  bootMs: number;
  /** Health checks come every so often: when the second good one has passed after the registration. */
  healthyMs: number;
  /** False: user data that never runs. */
  boots: boolean;
  /** How many times longer its products take. */
  slowness: number;
  /** The time from its hello to its death; Infinity for never. */
  diesAfterMs: number;
  diesSilently: boolean;
  bannedAfterMs: number;
}

/** A tenth of the pace. */
const SLOWNESS = 10;

export class Draws {
  readonly #random: Random;
  readonly #scenario: Scenario;
  readonly #bootMedianMs: number;
  readonly #bootSigma: number;
  readonly #gapMeanMs: number;
  readonly #gapSdMs: number;
  readonly #pageMs: number;

  /** Draws what all instances of this run have in common: how slow EC2 and the shop are today. */
  constructor(scenario: Scenario, random: Random) {
    const { input } = scenario;
    this.#random = random;
    this.#scenario = scenario;
    const bootSigma = sigmaOf(input.bootP50Ms, input.bootP95Ms);
    const pageSigma = sigmaOf(1, PAGE_P95_FACTOR);
    this.#bootMedianMs = input.bootP50Ms * Math.exp(bootSigma * Math.sqrt(COMMON) * this.#normal());
    this.#bootSigma = bootSigma * Math.sqrt(1 - COMMON);
    const pageMs = input.pageP50Ms * Math.exp(pageSigma * Math.sqrt(COMMON) * this.#normal());
    const work = workOf(input);
    const overheadMs = work.pageShare * PAGE_OVERHEAD_MS;
    const floorMs = Math.max(0, work.leastMs - overheadMs);
    const gap = momentsAbove(floorMs, work.pageShare * pageMs, pageSigma * Math.sqrt(1 - COMMON));
    const requestMs = gap.mean + overheadMs;
    this.#gapMeanMs = requestMs * input.pagesEach;
    this.#gapSdMs = Math.sqrt(gap.variance * input.pagesEach);
    // Over many hosts each request of a record is played.
    const beforeMs = input.hosts === undefined ? requestMs * (input.pagesEach - 1) : 0;
    this.#pageMs = beforeMs + pageMs + PAGE_OVERHEAD_MS;
  }

  /** The pace of the next `products` of one instance: their sum is drawn, not each of them. */
  pace(products: number): Pace {
    // The floor is the interval: luck makes a pile slower, never quicker than that.
    const floorMs = workOf(this.#scenario.input).paceMs;
    const drawn =
      this.#gapSdMs === 0
        ? this.#gapMeanMs
        : this.#gapMeanMs + (this.#normal() * this.#gapSdMs) / Math.sqrt(Math.max(1, products));
    return { gapMs: Math.max(floorMs, drawn), pageMs: this.#pageMs };
  }

  fate(): Fate {
    const { chances, input, plan } = this.#scenario;
    const workMs = Math.max(1, plan.productsEach) * Math.max(1, plan.paceMs);
    const crawlMs = Math.max(workMs, plan.manyHosts?.longestMs ?? 0);
    return {
      bootMs: input.bootP50Ms === 0 ? 0 : this.#bootMedianMs * Math.exp(this.#bootSigma * this.#normal()),
      healthyMs: OUTSIDE.healthyMs * (0.5 + 0.5 * this.#random.next()),
      boots: !this.#happens(chances.bootFailure),
      slowness: this.#happens(chances.slow) ? SLOWNESS : 1,
      diesAfterMs: this.#happens(chances.loss) ? crawlMs * this.#random.next() : Infinity,
      diesSilently: this.#happens(0.5),
      bannedAfterMs: this.#happens(chances.ban) ? crawlMs * this.#random.next() : Infinity,
    };
  }

  /** Draws always, so that a chance of zero changes nothing else in the run. */
  #happens(chance: number): boolean {
    return this.#random.next() < chance;
  }

  #normal(): number {
    return normalQuantile(Math.min(1 - 1e-9, Math.max(1e-9, this.#random.next())));
  }
}
