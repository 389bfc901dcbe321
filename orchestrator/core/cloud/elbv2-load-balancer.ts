/** The load balancer port on ELBv2 through the SDK: one application load balancer, one listener, one target group. */
import type {
  Action,
  ElasticLoadBalancingV2,
  Listener,
  LoadBalancer as Elb,
  TargetGroup,
} from '@aws-sdk/client-elastic-load-balancing-v2';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { type AwsOptions, AwsService, lazyElbv2, tagList } from './sdk-clients.ts';
import { classifyAwsError, toAppError } from './aws-errors.ts';
import { freePort } from './listener-ports.ts';
import { listOwned } from './elbv2-owned.ts';
import {
  type Balancer,
  type BalancerPart,
  type BalancerRequest,
  type ExistingBalancer,
  isRefusal,
  type LoadBalancer,
  type OwnedBalancer,
  PartsLeft,
  TARGET_STATES,
  type TargetHealth,
} from './load-balancer.ts';

/** A target group stays in use for some seconds after its load balancer was deleted. */
const RELEASE_PAUSES_MS = [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];

/** Maximum reads of the listeners of a shared load balancer before giving up. */
const SHARED_TRIES = 10;

/** What AWS refuses to delete of one balancer. */
class Kept {
  readonly #parts: BalancerPart[] = [];
  #error: AppError | null = null;

  isNothing(): boolean {
    return this.#error === null;
  }

  /** Throws what is no refusal; with `always` it counts as one. */
  async unless(part: BalancerPart, remove: () => Promise<void>, always = false): Promise<void> {
    try {
      await remove();
    } catch (error) {
      if (!(error instanceof AppError) || !(always || isRefusal(error))) throw error;
      this.#parts.push(part);
      this.#error ??= error;
    }
  }

  check(): void {
    if (this.#error !== null) throw new PartsLeft(this.#error.code, this.#error.message, this.#parts);
  }
}

export interface Elbv2Options extends AwsOptions {
  /** Default: the system's. */
  clock?: Clock;
}

export class Elbv2LoadBalancer implements LoadBalancer {
  readonly #elb: AwsService<ElasticLoadBalancingV2>;
  readonly #clock: Clock;

  /** Makes no call and loads no SDK yet. */
  constructor(options: Elbv2Options) {
    this.#elb = new AwsService(lazyElbv2, options);
    this.#clock = options.clock ?? systemClock;
  }

  /** Closes the kept-alive connections. */
  close(): void {
    this.#elb.close();
  }

  async ensure(request: BalancerRequest): Promise<Balancer> {
    const group = (await this.#findGroup(request.name)) ?? (await this.#createGroup(request));
    const targetGroupArn = group.TargetGroupArn;
    if (targetGroupArn === undefined) throw this.#incomplete('DescribeTargetGroups', 'TargetGroupArn');
    await this.#noDeregistrationDelay(targetGroupArn);
    if (request.existing != null) return this.#joinExisting(request, request.existing, targetGroupArn);
    const balancer = (await this.#findBalancer(request.name)) ?? (await this.#createBalancer(request));
    const loadBalancerArn = balancer.LoadBalancerArn;
    if (loadBalancerArn === undefined) throw this.#incomplete('DescribeLoadBalancers', 'LoadBalancerArn');
    const listenerArn = await this.#ensureListener(loadBalancerArn, targetGroupArn, request);
    if (!balancer.DNSName) throw this.#incomplete('DescribeLoadBalancers', 'DNSName');
    const url = urlOf(balancer.DNSName, request.listenPort, request);
    return { url, loadBalancerArn, targetGroupArn, listenerArn };
  }

  /**
   * The run's own listener, on the first free port. A resumed run finds the listener that forwards to its target group.
   */
  async #joinExisting(request: BalancerRequest, existing: string, targetGroupArn: string): Promise<Balancer> {
    const balancer = await this.#findBalancer(existing);
    if (!balancer?.LoadBalancerArn) {
      throw new AppError('aws-not-found', `aws.load_balancer: ELBv2 does not know ${existing}`, {
        hint: 'Give the name or the ARN of an application load balancer in this region, or leave aws.load_balancer out.',
      });
    }
    if (!balancer.DNSName) throw this.#incomplete('DescribeLoadBalancers', 'DNSName');
    const loadBalancerArn = balancer.LoadBalancerArn;
    for (let tries = 0; tries < SHARED_TRIES; tries++) {
      const there = await this.#listeners(loadBalancerArn);
      const own = there.find((l) => l.DefaultActions?.some((a) => forwardsTo(a, targetGroupArn)));
      const listener = own ?? (await this.#createListener(loadBalancerArn, targetGroupArn, freePort(there), request));
      // Null: another run took that port first.
      if (!listener?.ListenerArn || listener.Port === undefined) continue;
      const url = urlOf(balancer.DNSName, listener.Port, request);
      return { url, loadBalancerArn, targetGroupArn, listenerArn: listener.ListenerArn, shared: true };
    }
    throw new AppError('aws-failed', `No listener could be made on the load balancer ${existing}`);
  }

  async find(nameOrArn: string): Promise<ExistingBalancer | null> {
    const found = await this.#findBalancer(nameOrArn);
    return found === null ? null : toExisting(found);
  }

  async isActive(balancer: Balancer): Promise<boolean> {
    const reply = await this.#elb.unless('not-found', 'DescribeLoadBalancers', (elb) =>
      elb.describeLoadBalancers({ LoadBalancerArns: [balancer.loadBalancerArn] }),
    );
    const state = reply?.LoadBalancers?.[0]?.State;
    if (state?.Code === 'failed') {
      throw new AppError(
        'aws-failed',
        `The load balancer could not be provisioned: ${state.Reason ?? 'no reason given'}`,
        {
          hint: 'Check that the subnets are in two zones and have free addresses.',
        },
      );
    }
    return state?.Code === 'active' || state?.Code === 'active_impaired';
  }

  async register(balancer: Balancer, instanceId: string): Promise<'registered' | 'not-running'> {
    const reply = await this.#elb.unless('invalid-target', `RegisterTargets ${instanceId}`, (elb) =>
      elb.registerTargets({ TargetGroupArn: balancer.targetGroupArn, Targets: [{ Id: instanceId }] }),
    );
    return reply ? 'registered' : 'not-running';
  }

  async health(balancer: Balancer): Promise<Map<string, TargetHealth>> {
    const reply = await this.#elb.call('DescribeTargetHealth', (elb) =>
      elb.describeTargetHealth({ TargetGroupArn: balancer.targetGroupArn }),
    );
    // No set at all is a gateway's empty 200 and does not mean "no targets".
    if (!reply.TargetHealthDescriptions) throw this.#incomplete('DescribeTargetHealth', 'TargetHealthDescriptions');
    const health = new Map<string, TargetHealth>();
    for (const { Target, TargetHealth: state } of reply.TargetHealthDescriptions) {
      if (Target?.Id) health.set(Target.Id, toHealth(state?.State));
    }
    return health;
  }

  async whyUnhealthy(balancer: Balancer, instanceId: string): Promise<string | null> {
    const reply = await this.#elb.call(`DescribeTargetHealth ${instanceId}`, (elb) =>
      elb.describeTargetHealth({ TargetGroupArn: balancer.targetGroupArn, Targets: [{ Id: instanceId }] }),
    );
    const found = reply.TargetHealthDescriptions?.find((d) => d.Target?.Id === instanceId)?.TargetHealth;
    if (!found?.Reason || found.State === 'healthy') return null;
    return found.Description ? `${found.Reason}: ${found.Description}` : found.Reason;
  }

  async deregister(balancer: Balancer, instanceId: string): Promise<void> {
    await this.#elb.unless(['invalid-target', 'not-found'], `DeregisterTargets ${instanceId}`, (elb) =>
      elb.deregisterTargets({ TargetGroupArn: balancer.targetGroupArn, Targets: [{ Id: instanceId }] }),
    );
  }

  async remove({ loadBalancerArn, targetGroupArn, listenerArn, shared }: Balancer): Promise<void> {
    const kept = new Kept();
    if (shared) await kept.unless('listener', () => this.#removeListener(listenerArn));
    else {
      // Without it the target group is free sooner. A load balancer that goes takes it along in any case.
      await new Kept().unless('listener', () => this.#removeListener(listenerArn));
      await kept.unless('load balancer', () => this.#deleteBalancer(loadBalancerArn));
    }
    await this.#removeGroup(targetGroupArn, kept);
  }

  async removeByName(name: string): Promise<void> {
    const balancer = await this.#findBalancer(name);
    await this.#removeFound(balancer?.LoadBalancerArn ?? null, await this.#findGroup(name));
  }

  async list(owner: string): Promise<OwnedBalancer[]> {
    if (this.#elb.endpoint === null) return this.#elb.call('DescribeLoadBalancers', (elb) => listOwned(elb, owner));
    // An endpoint without ELBv2 has nothing to list; AWS always has ELBv2, whatever a proxy in front of it answers.
    return (
      (await this.#elb.unless('capability-missing', 'DescribeLoadBalancers', (elb) => listOwned(elb, owner))) ?? []
    );
  }

  async removeOwned({ loadBalancerArn, targetGroupArn }: OwnedBalancer): Promise<void> {
    const group = targetGroupArn === null ? null : await this.#describeGroup({ TargetGroupArns: [targetGroupArn] });
    await this.#removeFound(loadBalancerArn, group);
  }

  /**
   * The load balancer goes with its listeners. On those of the user's, a listener that forwards to one of our groups is
   * ours, whatever became of the run.
   */
  async #removeFound(loadBalancerArn: string | null, group: TargetGroup | null): Promise<void> {
    const kept = new Kept();
    if (loadBalancerArn !== null) await kept.unless('load balancer', () => this.#deleteBalancer(loadBalancerArn));
    const { TargetGroupArn, LoadBalancerArns = [] } = group ?? {};
    if (TargetGroupArn === undefined) return kept.check();
    for (const arn of LoadBalancerArns.filter((other) => other !== loadBalancerArn))
      await kept.unless('listener', () => this.#removeListenersTo(TargetGroupArn, arn));
    await this.#removeGroup(TargetGroupArn, kept);
  }

  async #removeListenersTo(targetGroupArn: string, loadBalancerArn: string): Promise<void> {
    for (const { DefaultActions, ListenerArn } of await this.#listeners(loadBalancerArn))
      if (ListenerArn !== undefined && DefaultActions?.some((a) => forwardsTo(a, targetGroupArn)))
        await this.#removeListener(ListenerArn);
  }

  /** The load balancer with this ARN, or with this name. */
  async #findBalancer(nameOrArn: string): Promise<Elb | null> {
    const which = nameOrArn.startsWith('arn:') ? { LoadBalancerArns: [nameOrArn] } : { Names: [nameOrArn] };
    const reply = await this.#elb.unless('not-found', 'DescribeLoadBalancers', (elb) =>
      elb.describeLoadBalancers(which),
    );
    const isIt = (b: Elb): boolean => b.LoadBalancerArn === nameOrArn || b.LoadBalancerName === nameOrArn;
    return reply?.LoadBalancers?.find((b) => b.LoadBalancerArn && isIt(b)) ?? null;
  }

  async #findGroup(name: string): Promise<TargetGroup | null> {
    const group = await this.#describeGroup({ Names: [name] });
    return group?.TargetGroupName === name ? group : null;
  }

  async #describeGroup(which: { Names: string[] } | { TargetGroupArns: string[] }): Promise<TargetGroup | null> {
    const reply = await this.#elb.unless('not-found', 'DescribeTargetGroups', (elb) => elb.describeTargetGroups(which));
    return reply?.TargetGroups?.find((g) => g.TargetGroupArn) ?? null;
  }

  async #listeners(loadBalancerArn: string): Promise<Listener[]> {
    const reply = await this.#elb.unless('not-found', 'DescribeListeners', (elb) =>
      elb.describeListeners({ LoadBalancerArn: loadBalancerArn }),
    );
    return (reply?.Listeners ?? []).filter((l) => l.ListenerArn);
  }

  async #createBalancer(request: BalancerRequest): Promise<Elb> {
    const reply = await this.#elb.unless('exists', 'CreateLoadBalancer', (elb) =>
      elb.createLoadBalancer({
        Name: request.name,
        Type: 'application',
        // Only the main server connects to it, mostly from inside the VPC; its idle timeout of 60 s is the default.
        Scheme: request.scheme ?? 'internal',
        IpAddressType: 'ipv4',
        Subnets: request.subnetIds,
        SecurityGroups: request.securityGroupIds,
        Tags: tagList(request.tags),
      }),
    );
    const made = reply?.LoadBalancers?.[0] ?? (await this.#findBalancer(request.name));
    if (!made?.LoadBalancerArn) throw this.#incomplete('CreateLoadBalancer', 'LoadBalancerArn');
    return made;
  }

  async #createGroup(request: BalancerRequest): Promise<TargetGroup> {
    const reply = await this.#elb.unless('exists', 'CreateTargetGroup', (elb) =>
      elb.createTargetGroup({
        Name: request.name,
        Protocol: 'HTTP',
        Port: request.targetPort,
        VpcId: request.vpcId,
        TargetType: 'instance',
        HealthCheckProtocol: 'HTTP',
        HealthCheckPath: request.healthPath,
        // The defaults, 30 s and five checks, would keep a ready instance idle for two and a half minutes.
        HealthCheckIntervalSeconds: 10,
        HealthCheckTimeoutSeconds: 5,
        HealthyThresholdCount: 2,
        UnhealthyThresholdCount: 2,
        Matcher: { HttpCode: '200' },
        Tags: tagList(request.tags),
      }),
    );
    const made = reply?.TargetGroups?.[0] ?? (await this.#findGroup(request.name));
    if (!made?.TargetGroupArn) throw this.#incomplete('CreateTargetGroup', 'TargetGroupArn');
    return made;
  }

  /**
   * The default is 300 s. This only saves time: neither an endpoint without the call nor a missing right stops the run.
   */
  async #noDeregistrationDelay(targetGroupArn: string): Promise<void> {
    await this.#elb.unless(['capability-missing', 'denied'], 'ModifyTargetGroupAttributes', (elb) =>
      elb.modifyTargetGroupAttributes({
        TargetGroupArn: targetGroupArn,
        Attributes: [{ Key: 'deregistration_delay.timeout_seconds', Value: '0' }],
      }),
    );
  }

  async #ensureListener(loadBalancerArn: string, targetGroupArn: string, request: BalancerRequest): Promise<string> {
    const there = (await this.#listeners(loadBalancerArn)).find((l) => l.Port === request.listenPort);
    if (there?.ListenerArn !== undefined) {
      if (there.DefaultActions?.some((a) => forwardsTo(a, targetGroupArn))) return there.ListenerArn;
      // It forwards to a group that has been recreated since: a half-finished start of the same run.
      await this.#removeListener(there.ListenerArn);
    }
    const made =
      (await this.#createListener(loadBalancerArn, targetGroupArn, request.listenPort, request)) ??
      (await this.#listeners(loadBalancerArn)).find((l) => l.Port === request.listenPort);
    if (!made?.ListenerArn) throw this.#incomplete('CreateListener', 'ListenerArn');
    return made.ListenerArn;
  }

  /** Creates a listener; null when the port has one. */
  async #createListener(
    loadBalancerArn: string,
    targetGroupArn: string,
    port: number,
    { certificate, tags }: BalancerRequest,
  ): Promise<Listener | null> {
    const reply = await this.#elb.unless('exists', 'CreateListener', (elb) =>
      elb.createListener({
        LoadBalancerArn: loadBalancerArn,
        ...(certificate === undefined
          ? { Protocol: 'HTTP' as const }
          : {
              Protocol: 'HTTPS' as const,
              Certificates: [{ CertificateArn: certificate }],
              // The API's default still allows TLS 1.0.
              SslPolicy: 'ELBSecurityPolicy-TLS13-1-2-2021-06',
            }),
        Port: port,
        DefaultActions: [{ Type: 'forward', TargetGroupArn: targetGroupArn }],
        Tags: tagList(tags),
      }),
    );
    return reply?.Listeners?.[0] ?? null;
  }

  async #removeListener(arn: string): Promise<void> {
    await this.#elb.unless('not-found', 'DeleteListener', (elb) => elb.deleteListener({ ListenerArn: arn }));
  }

  async #deleteBalancer(arn: string): Promise<void> {
    await this.#elb.unless('not-found', 'DeleteLoadBalancer', (elb) =>
      elb.deleteLoadBalancer({ LoadBalancerArn: arn }),
    );
  }

  /** Throws what is kept of the balancer in the end. */
  async #removeGroup(arn: string, kept: Kept): Promise<void> {
    // What is kept before it may use it for good: it is not waited for.
    const isFree = kept.isNothing();
    await kept.unless('target group', () => this.#deleteGroup(arn, isFree ? RELEASE_PAUSES_MS : []), !isFree);
    kept.check();
  }

  async #deleteGroup(arn: string, pausesMs: readonly number[]): Promise<void> {
    const elb = await this.#elb.client();
    for (const pauseMs of [...pausesMs, null]) {
      try {
        await elb.deleteTargetGroup({ TargetGroupArn: arn });
        return;
      } catch (error) {
        const { kind } = classifyAwsError(error);
        if (kind === 'not-found') return;
        if (kind !== 'in-use' || pauseMs === null) throw toAppError(error, 'DeleteTargetGroup', this.#elb.endpoint);
        await this.#clock.sleep(pauseMs);
      }
    }
  }

  #incomplete(call: string, field: string): AppError {
    return new AppError('aws-failed', `${call} at ${this.#elb.endpoint ?? 'AWS'} answered without ${field}`, {
      hint: 'Check that aws.endpoint is an AWS endpoint with ELBv2.',
    });
  }
}

function urlOf(dnsName: string, port: number, { certificate }: BalancerRequest): string {
  const [scheme, usualPort] = certificate === undefined ? ['http', 80] : ['https', 443];
  return `${scheme}://${dnsName}${port === usualPort ? '' : `:${port}`}`;
}

/** Whether a listener's action forwards to this target group, in either of ELBv2's two forms. */
const forwardsTo = (action: Action, arn: string): boolean =>
  action.TargetGroupArn === arn || (action.ForwardConfig?.TargetGroups ?? []).some((g) => g.TargetGroupArn === arn);

/** `unhealthy.draining` and whatever ELBv2 adds later are folded into the states the port knows. */
function toHealth(state: string | undefined): TargetHealth {
  if (state === 'unhealthy.draining') return 'draining';
  return TARGET_STATES.find((known) => known === state) ?? 'unavailable';
}

const toExisting = (balancer: Elb): ExistingBalancer => ({
  name: balancer.LoadBalancerName ?? '',
  loadBalancerArn: balancer.LoadBalancerArn!,
  type: balancer.Type ?? 'application',
  scheme: balancer.Scheme === 'internet-facing' ? 'internet-facing' : 'internal',
  vpcId: balancer.VpcId ?? '',
  zones: (balancer.AvailabilityZones ?? []).flatMap((z) => (z.ZoneName ? [z.ZoneName] : [])),
});
