/**
 * Why a run may stall although products wait, and what follows from each cause. A new cause needs a row here and a
 * caller of `setStallCause`; the watchdog, the end of the run, its report and `explain` take the rest from this table.
 * Pure.
 */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { FailureReason } from '../../../shared/domain/outcome.ts';

export interface StallKind {
  exitCode: ExitCode;
  /** The cause as a clause: it follows "because" and begins the reason of the run. */
  because: string;
  /** What the user can do about it. */
  remedy: string;
  /** The failure reason of the products that are left. */
  rest: FailureReason;
  /** The reason of the run quotes what was observed: AWS's words. */
  quotes?: true;
  /** AWS has said so: it is no explanation of a stall. */
  certain?: true;
}

/**
 * The causes of a stall in order of likelihood: where several are known, the first one is named. At most 16 characters
 * each: they are stored as the run's stop request.
 */
const STALL_CAUSES = {
  'lost-bucket': {
    exitCode: EXIT.config,
    because: 'the bucket cannot be used',
    remedy:
      'Create the bucket again under its name, or restore the rights to list, read and write it; then orchestrator retry.',
    rest: 'upload',
    quotes: true,
  },
  'refused-right': {
    exitCode: EXIT.config,
    because: 'AWS refuses a call that it needs',
    remedy:
      'Allow what orchestrator doctor names under "EC2 rights" and "load balancer rights" (deploy/policies/controller.json has the policy); then orchestrator retry.',
    rest: 'lost-instance',
    quotes: true,
    certain: true,
  },
  'refused-upload': {
    exitCode: EXIT.config,
    because: "the instances' role may not store results in the bucket",
    remedy:
      'Give the role in aws.instance_profile the policy of deploy/policies/instance.json, its key in KMS where the bucket has one, and the instances HTTPS to STS, which names the folder that the policy allows; then orchestrator retry.',
    rest: 'upload',
    quotes: true,
    certain: true,
  },
  unreachable: {
    exitCode: EXIT.config,
    because: 'this machine cannot reach the load balancer',
    remedy:
      'Let this machine reach the listener of the balancer: its security group, aws.balancer_scheme, DNS, routes (orchestrator doctor shows them); then orchestrator retry.',
    rest: 'lost-instance',
  },
  'site-down': {
    exitCode: EXIT.siteDown,
    because: 'the site is down',
    remedy: 'Check whether the site answers elsewhere, and retry later: orchestrator retry crawls what is left.',
    rest: 'network',
  },
  'balancer-quota': {
    exitCode: EXIT.capacity,
    because: 'AWS makes no further load balancer',
    remedy:
      'Remove a load balancer that is not used (orchestrator gc removes those of earlier runs), ask AWS for a higher quota, or name one that exists in aws.load_balancer; then orchestrator retry.',
    rest: 'lost-instance',
    quotes: true,
    certain: true,
  },
  'no-balancer': {
    exitCode: EXIT.config,
    because: 'AWS refuses the load balancer, a right or a parameter is wrong',
    remedy: 'Correct policy, subnets or security groups (orchestrator doctor checks them); then orchestrator retry.',
    rest: 'lost-instance',
    quotes: true,
    certain: true,
  },
  'no-progress': {
    exitCode: EXIT.failedProducts,
    because: 'nothing came in',
    remedy: 'orchestrator logs has what the instances reported last; orchestrator retry crawls what is left.',
    rest: 'lost-instance',
  },
} as const satisfies Record<string, StallKind>;

export type StallCause = keyof typeof STALL_CAUSES;

export const stallKind = (cause: StallCause): StallKind => STALL_CAUSES[cause];

/** True for a stop request that the watchdog has made. */
export const isStallCause = (request: string | null): request is StallCause =>
  request !== null && Object.hasOwn(STALL_CAUSES, request);

/** A known cause that is not over: since when (wall clock), and what was observed, in words. */
export interface ActiveStallCause {
  sinceMs: number;
  detail: string;
}

export type ActiveStallCauses = ReadonlyMap<StallCause, ActiveStallCause>;

/** The likeliest cause of a stall. */
export function likeliestCause(faults: ActiveStallCauses): StallCause {
  const causes = Object.keys(STALL_CAUSES) as StallCause[];
  return causes.find((cause) => faults.has(cause)) ?? 'no-progress';
}

/** Records what is observed now; a cause that goes on keeps the time it began. */
export function setStallCause(
  faults: Map<StallCause, ActiveStallCause>,
  cause: StallCause,
  detail: string | null,
  nowMs: number,
): void {
  if (detail === null) faults.delete(cause);
  else faults.set(cause, { sinceMs: Math.min(faults.get(cause)?.sinceMs ?? nowMs, nowMs), detail });
}
