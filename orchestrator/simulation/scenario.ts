/** What is simulated: the fleet that was planned, how the outside usually behaves, and what goes wrong. */
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

/** Which instances: the first of those that crawl (`count`), or all of them. */
type Whom = { count: number } | 'all';

/** Something that happens at a set moment; times count from the start of the run. */
export type Fault =
  /** `silent`: EC2 goes on showing it as running, as with a kernel panic. */
  | { kind: 'kill'; atMs: number; whom: Whom; silent: boolean }
  /** It does nothing for a while, then goes on as if nothing had been. */
  | { kind: 'freeze'; atMs: number; whom: Whom; forMs: number }
  | { kind: 'ban'; atMs: number; whom: Whom }
  | { kind: 'slow'; atMs: number; whom: Whom; factor: number }
  /** EC2 has no capacity; `subnets` and `types` say where, everywhere without them. */
  | { kind: 'dry'; atMs: number; forMs: number; subnets?: readonly string[]; types?: readonly string[] }
  /** EC2 throttles every launch. */
  | { kind: 'throttle'; atMs: number; forMs: number }
  /** The main server is down: nobody hears the instances. */
  | { kind: 'main-server-down'; atMs: number; forMs: number };

/** How the outside behaves beside what a plan knows of it. Milliseconds. */
export interface Outside {
  /** From the call to EC2 saying `running`. */
  pendingMs: number;
  /** EC2 does not show a fresh instance for so long. */
  invisibleMs: number;
  /** From the terminate call to `terminated`. */
  shuttingDownMs: number;
  /** From its registration until a target is healthy: two checks, 10 s apart. */
  healthyMs: number;
  /** From a message to its answer. */
  roundTripMs: number;
  /** To put an object into the bucket. */
  uploadMs: number;
  /** Rows of the publishing statement. */
  publishRowsPerSecond: number;
  /** vCPUs the account may really run; Infinity for enough. */
  vcpuQuota: number;
  /** Share of products that the shop does not have any more. */
  goneShare: number;
}

/** EC2, ELBv2 and S3 as they usually are. */
const USUAL_OUTSIDE: Readonly<Outside> = {
  pendingMs: 15_000,
  invisibleMs: 1_000,
  shuttingDownMs: 30_000,
  healthyMs: 20_000,
  roundTripMs: 50,
  uploadMs: 500,
  publishRowsPerSecond: 20_000,
  vcpuQuota: Infinity,
  goneShare: 0.01,
};

/** What the configuration says and the plan does not. */
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
  outside: Outside;
  chances: Chances;
  faults: readonly Fault[];
}

/** A calm day for this plan, with whatever is to be different. */
export function scenarioOf(
  input: PlanInput,
  plan: Plan,
  change: {
    rules?: Partial<Rules>;
    outside?: Partial<Outside>;
    chances?: Partial<Chances>;
    faults?: readonly Fault[];
  } = {},
): Scenario {
  return {
    input,
    plan,
    rules: { ...USUAL_RULES, ...change.rules },
    outside: { ...USUAL_OUTSIDE, ...change.outside },
    chances: { ...NO_CHANCES, ...change.chances },
    faults: change.faults ?? [],
  };
}
