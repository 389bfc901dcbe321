/** From a seed to the faults of a run and their moments. A seed fixes the scenario, not the machine's speed. */
import { seededRandom } from '../../shared/adapters/random.ts';
import type { Random } from '../../shared/ports/random.ts';
import { type Allowance, between, type Fault, FAULTS } from './faults.ts';

/**
 * boot: delay after the run's row was written · crawl: number of requests the shop has received · close: delay after
 * the last product was requested.
 */
export type Moment = { at: 'boot' | 'close'; delayMs: number } | { at: 'crawl'; requests: number };

interface Step {
  moment: Moment;
  fault: Fault;
}

export interface Scenario {
  seed: number;
  products: number;
  instances: number;
  /** In the order of their moments; the second waits for the end of the first. */
  steps: Step[];
}

/** Consecutive seeds cycle through all kinds of faults; every third has a second one, drawn from all. */
export function drawScenario(seed: number): Scenario {
  const random = seededRandom(seed * 7_919);
  const products = between(random, 60, 100);
  const first = FAULTS[(((seed - 1) % FAULTS.length) + FAULTS.length) % FAULTS.length]!(random);
  const faults = random.next() < 1 / 3 ? [first, FAULTS[between(random, 0, FAULTS.length - 1)]!(random)] : [first];
  const steps = faults.map((fault) => ({ moment: drawMoment(random, products), fault }));
  steps.sort((a, b) => order(a.moment) - order(b.moment));
  return { seed, products, instances: between(random, 3, 4), steps };
}

function drawMoment(random: Random, products: number): Moment {
  const chance = random.next();
  if (chance < 0.2) return { at: 'boot', delayMs: between(random, 0, 2_500) };
  if (chance < 0.8) return { at: 'crawl', requests: between(random, 1, products - 1) };
  return { at: 'close', delayMs: between(random, 0, 800) };
}

function order(moment: Moment): number {
  if (moment.at === 'crawl') return 1_000_000 + moment.requests;
  return (moment.at === 'boot' ? 0 : 2_000_000) + moment.delayMs;
}

export function describeMoment(moment: Moment): string {
  if (moment.at === 'crawl') return `at request ${moment.requests}`;
  return moment.at === 'boot'
    ? `${moment.delayMs} ms after the start`
    : `${moment.delayMs} ms after the last product was asked for`;
}

/** The permitted consequences of all its faults together. */
export function allowanceOf({ steps }: Scenario): Required<Allowance> {
  const all = steps.map(({ fault }) => fault.allows);
  const sum = (of: (allowance: Allowance) => number | undefined): number =>
    all.reduce((total, allowance) => total + (of(allowance) ?? 0), 0);
  return {
    repeats: sum((allowance) => allowance.repeats),
    replacements: sum((allowance) => allowance.replacements),
    exits: all.flatMap((allowance) => allowance.exits ?? []),
  };
}
