/** A plan of faults as one line, `<seed> [discover] [hosts] F19@C+1500 F1@L+0`: the same line plays the same run. */
import { seededRandom } from '../../shared/adapters/random.ts';
import { AppError } from '../../shared/domain/errors.ts';
import type { RunShape } from '../contract/core/run-stage.ts';
import { FAULTS } from './catalogue.ts';
import { Dice } from './dice.ts';
import type { Moment } from './faulty-cloud.ts';

interface PlannedFault {
  name: string;
  moment: Moment;
  afterMs: number;
}

export interface FaultPlan {
  seed: number;
  /** Two nights of a discovery: the first with the faults, the second without. */
  discovery: boolean;
  /** Its products are records at many hosts. */
  hosts: boolean;
  faults: PlannedFault[];
  /** The effect around which the first main server is killed. */
  crash: { at: number; side: 'before' | 'after' } | null;
}

const NAMES = Object.keys(FAULTS);
/** Runs per bug switch. */
const BUG_RUNS = 60;

/** Zero to three faults from all, or one or two from the given ones. */
function randomPlan(seed: number, kind: RunKind, names: readonly string[]): FaultPlan {
  const dice = new Dice(seededRandom(seed ^ 0x5eed));
  const count = names.length < NAMES.length ? dice.between(1, 2) : dice.between(0, 3);
  const faults = Array.from({ length: count }, () => randomFault(dice, dice.pick(names)!));
  return { seed, ...kind, faults, crash: null };
}

type RunKind = Pick<FaultPlan, 'discovery' | 'hosts'>;
const PLAIN: RunKind = { discovery: false, hosts: false };
/** One run in twenty is a discovery, and one in ten of many hosts. */
const kindOf = (i: number): RunKind => ({ discovery: i % 20 === 19, hosts: i % 10 === 4 });

/** Maximum random runs of one seed, and the distance between the first runs of two seeds. */
const MOST_RUNS = 100_000;

/**
 * The first `count` random runs of a campaign's seed; one in twenty is a discovery, which takes far longer, one in ten
 * has many hosts. Throws `usage` above the maximum.
 */
export function randomPlans(seed: number, count: number, names: readonly string[] = NAMES): FaultPlan[] {
  if (!(count >= 0 && count <= MOST_RUNS))
    throw new AppError('usage', `a seed has ${MOST_RUNS} random runs, not ${count}: take several seeds`);
  return Array.from({ length: count }, (_, i) => randomPlan(seed * MOST_RUNS + i, kindOf(i), names));
}

/** Runs in which a bug must be detected. */
export function bugPlans(
  bug: { faults: readonly string[]; plans?: readonly string[]; kind?: Partial<RunKind> },
  seed: number,
): FaultPlan[] {
  if (bug.plans) return bug.plans.map(parsePlan);
  const names = bug.faults.length > 0 ? bug.faults : NAMES;
  return randomPlans(seed, BUG_RUNS, names).map((plan) => ({ ...plan, ...PLAIN, ...bug.kind }));
}

/** Each fault alone at each of its moments. */
export const singlePlans = (): FaultPlan[] =>
  NAMES.flatMap((name, i) =>
    FAULTS[name]!.moments.map((moment, k) => ({
      seed: 1_000 + i * 20 + k,
      ...PLAIN,
      faults: [{ name, moment, afterMs: (k * 400) % 1_500 }],
      crash: null,
    })),
  );

const PAIRED = ['F1', 'F3', 'F8', 'F16', 'F19', 'F22', 'F37', 'F39', 'F41', 'F43', 'F46', 'F47', 'F57'];

/** All pairs of the faults that interact worst. */
export function pairPlans(): FaultPlan[] {
  return PAIRED.flatMap((a, i) =>
    PAIRED.slice(i + 1).map((b, k) => {
      const seed = 2_000 + i * 20 + k;
      const dice = new Dice(seededRandom(seed));
      return { seed, ...PLAIN, faults: [randomFault(dice, a), randomFault(dice, b)], crash: null };
    }),
  );
}

function randomFault(dice: Dice, name: string): PlannedFault {
  return { name, moment: dice.pick(FAULTS[name]!.moments)!, afterMs: dice.chance(0.4) ? 0 : dice.between(1, 6_000) };
}

/** A small run of its own for each seed. */
export function shapeOf(seed: number): RunShape {
  const dice = new Dice(seededRandom(seed ^ 0x5a5e));
  const onBan = dice.pick(['cool-down', 'cool-down', 'replace'] as const)!;
  const shape: RunShape = {
    products: dice.between(0, 15) === 0 ? dice.between(0, 1) : dice.between(10, 60),
    instances: dice.between(1, 4),
    chunkSize: dice.between(1, 5),
    intervalMs: dice.pick([300, 1_000, 2_000])!,
    deadlineMs: dice.pick([180_000, 480_000])!,
    site: { onBan, ban: { statuses: [], redirects: [], patterns: [], coolDownMs: dice.pick([5_000, 60_000])! } },
  };
  // Drawn last, so that the shapes of older seeds stay unchanged.
  return dice.chance(0.3) ? { ...shape, recycleEveryMs: dice.pick([12_000, 25_000])! } : shape;
}

export function formatPlan({ seed, discovery, hosts, faults, crash }: FaultPlan): string {
  const killed = crash ? [`kill-${crash.side}@${crash.at}`] : [];
  return [
    seed,
    ...(discovery ? ['discover'] : []),
    ...(hosts ? ['hosts'] : []),
    ...faults.map((f) => `${f.name}@${f.moment}+${f.afterMs}`),
    ...killed,
  ].join(' ');
}

/** Throws `usage` for an invalid line. */
export function parsePlan(line: string): FaultPlan {
  const [seed, ...words] = line.trim().split(/\s+/);
  const plan: FaultPlan = { seed: Number(seed), ...PLAIN, faults: [], crash: null };
  for (const word of words) {
    const kill = /^kill-(before|after)@(\d+)$/.exec(word);
    const fault = /^(F\d+)@([A-Z])\+(\d+)$/.exec(word);
    if (word === 'discover') plan.discovery = true;
    else if (word === 'hosts') plan.hosts = true;
    else if (kill) plan.crash = { at: Number(kill[2]), side: kill[1] as 'before' | 'after' };
    else if (fault && FAULTS[fault[1]!])
      plan.faults.push({ name: fault[1]!, moment: fault[2] as Moment, afterMs: Number(fault[3]) });
    else throw new AppError('usage', `${word} is no fault of a replay line`);
  }
  if (!seed || !Number.isInteger(plan.seed))
    throw new AppError('usage', `a replay line begins with its seed, not with ${seed ?? ''}`);
  return plan;
}
