/**
 * The port to ELBv2: one target group behind one application load balancer, created for a run and removed after it; or
 * behind a load balancer of the user's, to which the run only adds its own listener and removes it again.
 */

import { AppError, type ErrorCode } from '../../../shared/domain/errors.ts';

/** How the URL of a run without a load balancer begins; the run follows. Its offers go to the instances themselves. */
export const DIRECT = 'direct:';

/** The created resources, stored in the run's row so that `resume` finds and removes them. */
export interface Balancer {
  /** Base URL that offers are sent to, without a trailing slash. */
  url: string;
  loadBalancerArn: string;
  targetGroupArn: string;
  listenerArn: string;
  /** The load balancer is the user's: only listener and target group belong to the run. */
  shared?: true;
}

export interface BalancerRequest {
  /** The name, at most 32 characters, letters, digits and hyphens: the run's short name. */
  name: string;
  /** Name or ARN of a load balancer of the user's; null or left out: one is created under `name`. */
  existing?: string | null;
  /** `internal` when left out: the main server is in the VPC. Ignored for an existing load balancer. */
  scheme?: BalancerScheme;
  vpcId: string;
  subnetIds: string[];
  securityGroupIds: string[];
  /** ARN of the certificate for an HTTPS listener; left out: HTTP. */
  certificate?: string;
  /** Port the load balancer listens on; an existing one uses the first free port of SHARED_PORTS. */
  listenPort: number;
  /** Port the instances serve on. */
  targetPort: number;
  healthPath: string;
  tags: Record<string, string>;
}

/** ELBv2's terms. `unused`: the target's zone is not enabled on the load balancer. */
export const TARGET_STATES = ['initial', 'healthy', 'unhealthy', 'draining', 'unused', 'unavailable'] as const;
export type TargetHealth = (typeof TARGET_STATES)[number];

/** Resources of one name with an owner's tag: a load balancer, its target group, or whichever of the two is left. */
export interface OwnedBalancer {
  name: string;
  loadBalancerArn: string | null;
  targetGroupArn: string | null;
  /** When the load balancer was created; null for a target group without one. */
  createdAtMs: number | null;
  tags: Record<string, string>;
}

/** What a balancer consists of; only the first one costs anything. */
export type BalancerPart = 'load balancer' | 'listener' | 'target group';

/** A missing right or a wrong parameter: no retry changes it. Takes anything thrown. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof AppError && (error.code === 'aws-denied' || error.code === 'aws-invalid');

/** AWS refuses to delete these parts of a balancer. Whatever else it had is gone. */
export class PartsLeft extends AppError {
  readonly parts: readonly BalancerPart[];

  constructor(code: ErrorCode, message: string, parts: readonly BalancerPart[]) {
    super(code, message);
    this.parts = parts;
  }
}

export type BalancerScheme = 'internal' | 'internet-facing';

/**
 * Ports on a load balancer of the user's, one per concurrent run. Its security group must let the main server in there.
 */
export const SHARED_PORTS = { first: 8_800, last: 8_899 } as const;

/** A load balancer of the user's. */
export interface ExistingBalancer {
  name: string;
  loadBalancerArn: string;
  /** `application`, `network` or `gateway`. */
  type: string;
  scheme: BalancerScheme;
  vpcId: string;
  /** Zones enabled on it: targets elsewhere stay `unused`. */
  zones: string[];
}

export interface LoadBalancer {
  /** The load balancer with this name or ARN; null when there is none. */
  find(nameOrArn: string): Promise<ExistingBalancer | null>;
  /**
   * Finds what has this name and creates what is missing. Idempotent. May resolve before the load balancer is active.
   */
  ensure(request: BalancerRequest): Promise<Balancer>;
  /** False while the load balancer is still being provisioned (minutes on AWS). */
  isActive(balancer: Balancer): Promise<boolean>;
  /** `not-running` when an instance cannot be a target yet (InvalidTarget): retry later. */
  register(balancer: Balancer, instanceId: string): Promise<'registered' | 'not-running'>;
  health(balancer: Balancer): Promise<Map<string, TargetHealth>>;
  /**
   * ELBv2's code and message for an unhealthy target, such as `Target.ResponseCodeMismatch`; null when it is healthy or
   * absent.
   */
  whyUnhealthy(balancer: Balancer, instanceId: string): Promise<string | null>;
  /** A missing target counts as done. */
  deregister(balancer: Balancer, instanceId: string): Promise<void>;
  /**
   * Removes listener, load balancer (unless it is the user's) and target group. Missing resources count as removed.
   * What AWS refuses to delete does not keep the rest: `PartsLeft` then names it.
   */
  remove(balancer: Balancer): Promise<void>;
  /**
   * Removes everything with this name and the listeners that forward to it, for a run that died before storing the
   * resources. Fails as `remove` does.
   */
  removeByName(name: string): Promise<void>;
  /** Everything in the account and region with this value of the tag crawlfleet:owner; all pages. */
  list(owner: string): Promise<OwnedBalancer[]>;
  /**
   * Removes exactly the named resources and the listeners that forward to them. Missing resources count as removed.
   * Fails as `remove` does.
   */
  removeOwned(owned: OwnedBalancer): Promise<void>;
}
