/** The port to ELBv2: one application load balancer with one target group, made for a run and removed after it. */

/** What was made, stored in the run's row so that `resume` finds and removes it. */
export interface Balancer {
  /** Base URL that offers are sent to, without a trailing slash. */
  url: string;
  loadBalancerArn: string;
  targetGroupArn: string;
  listenerArn: string;
}

export interface BalancerRequest {
  /** At most 32 characters, letters, digits and hyphens: the run's short name. */
  name: string;
  vpcId: string;
  subnetIds: string[];
  securityGroupIds: string[];
  /** Port the balancer listens on. */
  listenPort: number;
  /** Port the instances serve on. */
  targetPort: number;
  healthPath: string;
  tags: Record<string, string>;
}

/** ELBv2's own words. `unused` = its zone is not enabled on the balancer. */
export type TargetHealth = 'initial' | 'healthy' | 'unhealthy' | 'draining' | 'unused' | 'unavailable';

export interface LoadBalancer {
  /** Finds what has this name, makes what is missing. Idempotent. Resolves when it exists, which may be before it is active. */
  ensure(request: BalancerRequest): Promise<Balancer>;
  /** False while the balancer is still being provisioned (minutes on AWS). */
  isActive(balancer: Balancer): Promise<boolean>;
  /** `not-running` when an instance cannot be a target yet (InvalidTarget): ask again later. */
  register(balancer: Balancer, instanceId: string): Promise<'registered' | 'not-running'>;
  /** Health by instance id. */
  health(balancer: Balancer): Promise<Map<string, TargetHealth>>;
  /** A target that is not there counts as done. */
  deregister(balancer: Balancer, instanceId: string): Promise<void>;
  /** Removes listener, balancer and target group; what is gone already counts as removed. */
  remove(balancer: Balancer): Promise<void>;
  /** Removes whatever carries this name, for a run that died before it could store what it made. */
  removeByName(name: string): Promise<void>;
}
