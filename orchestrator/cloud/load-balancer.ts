/**
 * The port to ELBv2: one target group behind one application load balancer, made for a run and removed after it; or behind a
 * balancer of the user's, which is never changed but for a listener that comes and goes with the run.
 */

/** What was made, stored in the run's row so that `resume` finds and removes it. */
export interface Balancer {
  /** Base URL that offers are sent to, without a trailing slash. */
  url: string;
  loadBalancerArn: string;
  targetGroupArn: string;
  listenerArn: string;
  /** The balancer is the user's: only listener and target group are the run's own. */
  shared?: true;
}

export interface BalancerRequest {
  /** At most 32 characters, letters, digits and hyphens: the run's short name. */
  name: string;
  /** Name or ARN of a balancer of the user's; null or left out: one is made under `name`. */
  existing?: string | null;
  /** `internal` when left out: the main server is in the VPC. Of no meaning for an existing one. */
  scheme?: BalancerScheme;
  vpcId: string;
  subnetIds: string[];
  securityGroupIds: string[];
  /** Port the balancer listens on; on an existing one the first free port from SHARED_PORTS on. */
  listenPort: number;
  /** Port the instances serve on. */
  targetPort: number;
  healthPath: string;
  tags: Record<string, string>;
}

/** ELBv2's own words. `unused` = its zone is not enabled on the balancer. */
export type TargetHealth = 'initial' | 'healthy' | 'unhealthy' | 'draining' | 'unused' | 'unavailable';

/** What carries an owner's tag under one name: a balancer, its target group, or the one that was left of them. */
export interface OwnedBalancer {
  name: string;
  loadBalancerArn: string | null;
  targetGroupArn: string | null;
  /** Of the balancer; null for a target group that is left alone. */
  createdAtMs: number | null;
  tags: Record<string, string>;
}

export type BalancerScheme = 'internal' | 'internet-facing';

/** Ports on a balancer of the user's: its security group must let the main server in there. One for each run at a time. */
export const SHARED_PORTS = { first: 8_800, last: 8_899 } as const;

/** A balancer of the user's. */
export interface ExistingBalancer {
  name: string;
  loadBalancerArn: string;
  /** `application`, `network` or `gateway`. */
  type: string;
  scheme: BalancerScheme;
  vpcId: string;
  /** Zones that are enabled on it: targets elsewhere stay `unused`. */
  zones: string[];
}

export interface LoadBalancer {
  /** The balancer with this name or ARN; null when there is none. */
  find(nameOrArn: string): Promise<ExistingBalancer | null>;
  /** Finds what has this name, makes what is missing. Idempotent. Resolves when it exists, which may be before it is active. */
  ensure(request: BalancerRequest): Promise<Balancer>;
  /** False while the balancer is still being provisioned (minutes on AWS). */
  isActive(balancer: Balancer): Promise<boolean>;
  /** `not-running` when an instance cannot be a target yet (InvalidTarget): ask again later. */
  register(balancer: Balancer, instanceId: string): Promise<'registered' | 'not-running'>;
  /** Health by instance id. */
  health(balancer: Balancer): Promise<Map<string, TargetHealth>>;
  /** ELBv2's code and words for what is wrong with a target, such as `Target.ResponseCodeMismatch`; null when nothing is, or it is not there. */
  whyUnhealthy(balancer: Balancer, instanceId: string): Promise<string | null>;
  /** A target that is not there counts as done. */
  deregister(balancer: Balancer, instanceId: string): Promise<void>;
  /** Removes listener, balancer (unless it is the user's) and target group; what is gone already counts as removed. */
  remove(balancer: Balancer): Promise<void>;
  /** Removes whatever carries this name, and listeners that send to it, for a run that died before it could store what it made. */
  removeByName(name: string): Promise<void>;
  /** Everything in the account and region whose tag crawlfleet:owner has this value; all pages. */
  list(owner: string): Promise<OwnedBalancer[]>;
  /** Removes exactly what is named, with the listeners that send to it; what is gone already counts as removed. */
  removeOwned(owned: OwnedBalancer): Promise<void>;
}
