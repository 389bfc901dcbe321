/**
 * What is simulated: the fleet that was planned, how the outside usually behaves, and how often something goes wrong.
 */
import type { HostLoad } from '../plan/host-sums.ts';
import type { Plan, PlanInput } from '../plan/plan.ts';

/** Chances that something goes wrong, each of one instance. */
export interface Chances {
  /** It dies while it crawls, half of the time without EC2 noticing. */
  loss: number;
  /** The site bans its address while it crawls. */
  ban: number;
  /** It keeps a tenth of the pace. */
  slow: number;
  /** It never says hello. */
  bootFailure: number;
}

export const NO_CHANCES: Readonly<Chances> = { loss: 0, ban: 0, slow: 0, bootFailure: 0 };

/** Usual delays of EC2, ELBv2, S3 and the shop that a plan does not contain. Milliseconds. */
export const OUTSIDE = {
  /** The time from the call to EC2 saying `running`. */
  pendingMs: 15_000,
  /** How long EC2 omits a fresh instance. */
  invisibleMs: 1_000,
  /** The time from the terminate call to `terminated`. */
  shuttingDownMs: 30_000,
  /** The time from its registration until a target is healthy: two checks, 10 s apart. */
  healthyMs: 20_000,
  /** The time from a message to its answer. */
  roundTripMs: 50,
  /** The time to put an object into the bucket. */
  uploadMs: 500,
  /** Rows of the publishing statement. */
  publishRowsPerSecond: 20_000,
  /** Share of products that the shop does not have any more. */
  goneShare: 0.01,
  /** Share of products with further pages that are stored without some of them. */
  partialShare: 0.01,
} as const;

/** Configuration that the plan does not contain. */
export interface Rules {
  onBan: 'cool-down' | 'replace' | 'stop';
  coolDownMs: number;
  /** Share of failed products that is still fine. */
  maxFailed: number;
  subnets: readonly string[];
}

const USUAL_RULES: Readonly<Rules> = {
  onBan: 'cool-down',
  coolDownMs: 1_800_000,
  maxFailed: 0.05,
  subnets: ['subnet-a', 'subnet-c'],
};

export interface Scenario {
  input: PlanInput;
  plan: Plan;
  rules: Rules;
  chances: Chances;
  /** What is listed of each of many hosts; omitted: it is one site. */
  loads?: readonly HostLoad[];
}

/** A calm day for this plan, with these changes. */
export function scenarioOf(
  input: PlanInput,
  plan: Plan,
  change: { rules?: Partial<Rules>; chances?: Partial<Chances>; loads?: readonly HostLoad[] | undefined } = {},
): Scenario {
  const { rules, chances, loads } = change;
  return {
    input,
    plan,
    rules: { ...USUAL_RULES, ...rules },
    chances: { ...NO_CHANCES, ...chances },
    ...(loads === undefined ? {} : { loads }),
  };
}
