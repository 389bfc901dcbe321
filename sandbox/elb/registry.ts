/** All ELBv2 resources, and lookups shared by the calls. */
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import type { ConditionBoard } from '../conditions.ts';
import type { Catalogue } from '../ec2/catalogue.ts';
import type { FaultBook } from '../faults.ts';
import { ACCOUNT_ID } from '../ids.ts';
import type { AddressPool } from '../network.ts';
import type { Params } from '../query-protocol.ts';
import type { HealthCheck } from './health-check.ts';
import type { Listener, LoadBalancer } from './load-balancer.ts';
import type { TargetGroup, TargetInstance } from './target-group.ts';

export interface ElbContext {
  clock: Clock;
  conditions: ConditionBoard;
  faults: FaultBook;
  catalogue: Catalogue;
  registry: ElbRegistry;
  /** Addresses for load balancers. */
  addresses: AddressPool;
  healthCheck: HealthCheck;
  findInstance: (id: string) => TargetInstance | null;
}

export class ElbRegistry {
  readonly loadBalancers = new Map<string, LoadBalancer>();
  readonly targetGroups = new Map<string, TargetGroup>();
  /** The tags of all resources, by ARN. */
  readonly tags = new Map<string, Map<string, string>>();

  loadBalancer(arn: string): LoadBalancer {
    const found = this.loadBalancers.get(arn);
    if (!found) throw new AwsError('LoadBalancerNotFound', `Load balancer '${arn}' not found`);
    return found;
  }

  targetGroup(arn: string): TargetGroup {
    const found = this.targetGroups.get(arn);
    if (!found) throw new AwsError('TargetGroupNotFound', `Target groups '${arn}' not found`);
    return found;
  }

  listener(arn: string): { balancer: LoadBalancer; listener: Listener } {
    for (const balancer of this.loadBalancers.values()) {
      const listener = balancer.listeners().find((candidate) => candidate.arn === arn);
      if (listener) return { balancer, listener };
    }
    throw new AwsError('ListenerNotFound', `Listener '${arn}' not found`);
  }

  /** Ends every proxy and every check. */
  async close(): Promise<void> {
    for (const group of this.targetGroups.values()) group.close();
    await Promise.all([...this.loadBalancers.values()].map((balancer) => balancer.close()));
  }
}

export function elbArn(region: string, rest: string): string {
  return `arn:aws:elasticloadbalancing:${region}:${ACCOUNT_ID}:${rest}`;
}

interface Named {
  about: { arn: string; name: string };
}

/** Those with one of the ARNs or names, or all when the call names none; throws `refuse` of the first missing one. */
export function chooseNamed<T extends Named>(
  all: ReadonlyMap<string, T>,
  arns: readonly string[],
  names: readonly string[],
  refuse: (missing: string) => AwsError,
): T[] {
  const items = [...all.values()];
  const missing =
    arns.find((arn) => !all.has(arn)) ?? names.find((name) => !items.some(({ about }) => about.name === name));
  if (missing !== undefined) throw refuse(missing);
  if (arns.length + names.length === 0) return items;
  return items.filter(({ about }) => arns.includes(about.arn) || names.includes(about.name));
}

const MAX_PAGE = 400;

/** One page by PageSize and Marker. @param nameOf identifies the item that a marker names */
export function pageOf<T>(
  items: readonly T[],
  params: Params,
  nameOf: (item: T) => string,
): { items: T[]; nextMarker: string | undefined } {
  const size = params.int('PageSize') ?? MAX_PAGE;
  if (size < 1 || size > MAX_PAGE) throw new AwsError('ValidationError', `PageSize must be between 1 and ${MAX_PAGE}`);
  const encode = (item: T): string => Buffer.from(nameOf(item)).toString('base64url');
  const marker = params.text('Marker');
  const after = marker === undefined ? -1 : items.findIndex((item) => encode(item) === marker);
  if (marker !== undefined && after < 0) throw new AwsError('ValidationError', 'Invalid Marker');
  const rest = items.slice(after + 1);
  const last = rest.length > size ? rest[size - 1] : undefined;
  return { items: rest.slice(0, size), nextMarker: last && encode(last) };
}
