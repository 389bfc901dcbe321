/** ELBv2 in memory: keeps state, records its calls, and can be made to fail. */
import { AppError } from '../../../../shared/domain/errors.ts';
import type { Clock } from '../../../../shared/ports/clock.ts';
import { TAG } from '../../cloud/compute.ts';
import {
  type Balancer,
  type BalancerRequest,
  type ExistingBalancer,
  type LoadBalancer,
  type OwnedBalancer,
  SHARED_PORTS,
  type TargetHealth,
} from '../../cloud/load-balancer.ts';

export interface MemoryLoadBalancerOptions {
  clock: Clock;
  /** Ends the host names of its balancers: those of two regions must differ. Default `memory`. */
  domain?: string;
  /** Whether an instance can be a target: MemoryCompute's isRunning. Default: always. */
  isRunning?: (instanceId: string) => boolean;
  /** The time from ensure() to active. Default 0. */
  provisioningMs?: number;
  /** The time from register() to healthy, by instance. Default 0. */
  healthyAfterMs?: (instanceId: string) => number;
  /** What a health check of a running instance finds. Default: that it is healthy. */
  isHealthy?: (instanceId: string) => boolean;
}

export interface MemoryBalancerCall {
  name: keyof LoadBalancer;
  atMs: number;
  /** Balancer name or instance id. */
  detail: string;
}

interface State {
  balancer: Balancer;
  request: BalancerRequest;
  createdAtMs: number;
  tags: Record<string, string>;
  activeAtMs: number;
  /** When each target was registered. */
  targets: Map<string, number>;
}

export class MemoryLoadBalancer implements LoadBalancer {
  readonly calls: MemoryBalancerCall[] = [];
  /** Health that a target shows instead of its own, by instance id. */
  readonly forcedHealth = new Map<string, TargetHealth>();
  /** Zones that `find` shows as enabled. */
  zones: string[] = ['ap-northeast-1a', 'ap-northeast-1c'];
  /** Called before every call; throw from it to make the call fail. */
  onCall: (call: MemoryBalancerCall) => void = () => {};

  readonly #options: Required<Omit<MemoryLoadBalancerOptions, 'clock'>>;
  readonly #clock: Clock;
  readonly #balancers = new Map<string, State>();

  constructor(options: MemoryLoadBalancerOptions) {
    this.#clock = options.clock;
    const usual = {
      domain: 'memory',
      isRunning: () => true,
      provisioningMs: 0,
      healthyAfterMs: () => 0,
      isHealthy: () => true,
    };
    this.#options = { ...usual, ...options };
  }

  async ensure(request: BalancerRequest): Promise<Balancer> {
    this.#record('ensure', request.name);
    let state = this.#balancers.get(request.name);
    if (!state) {
      const host = request.existing == null ? undefined : this.#named(request.existing);
      if (request.existing != null && !host)
        throw new AppError('aws-not-found', `aws.load_balancer: ELBv2 does not know ${request.existing}`);
      const taken = [...this.#balancers.values()].filter((s) => s.balancer.shared).length;
      const port = host ? SHARED_PORTS.first + taken : request.listenPort;
      const balancer: Balancer = {
        url: `http://${host?.request.name ?? request.name}.balancer.${this.#options.domain}:${port}`,
        loadBalancerArn: host?.balancer.loadBalancerArn ?? `arn:memory:balancer/${request.name}`,
        targetGroupArn: `arn:memory:group/${request.name}`,
        listenerArn: `arn:memory:listener/${request.name}`,
        ...(host ? { shared: true as const } : {}),
      };
      const createdAtMs = this.#clock.now();
      const activeAtMs = createdAtMs + this.#options.provisioningMs;
      state = { balancer, request, createdAtMs, tags: { ...request.tags }, activeAtMs, targets: new Map() };
      this.#balancers.set(request.name, state);
    }
    return { ...state.balancer };
  }

  async find(nameOrArn: string): Promise<ExistingBalancer | null> {
    this.#record('find', nameOrArn);
    const found = this.#named(nameOrArn);
    if (!found) return null;
    const { name, vpcId, scheme = 'internal' } = found.request;
    return {
      name,
      loadBalancerArn: found.balancer.loadBalancerArn,
      type: 'application',
      scheme,
      vpcId,
      zones: this.zones,
    };
  }

  async isActive(balancer: Balancer): Promise<boolean> {
    this.#record('isActive', balancer.loadBalancerArn);
    const state = this.#find(balancer);
    return state !== undefined && this.#clock.now() >= state.activeAtMs;
  }

  async register(balancer: Balancer, instanceId: string): Promise<'registered' | 'not-running'> {
    this.#record('register', instanceId);
    const state = this.#existing(balancer);
    if (!this.#options.isRunning(instanceId)) return 'not-running';
    if (!state.targets.has(instanceId)) state.targets.set(instanceId, this.#clock.now());
    return 'registered';
  }

  async health(balancer: Balancer): Promise<Map<string, TargetHealth>> {
    this.#record('health', balancer.loadBalancerArn);
    const health = new Map<string, TargetHealth>();
    for (const [id, registeredAtMs] of this.#existing(balancer).targets)
      health.set(id, this.#healthOf(id, registeredAtMs));
    return health;
  }

  #healthOf(id: string, registeredAtMs: number): TargetHealth {
    const forced = this.forcedHealth.get(id);
    if (forced !== undefined) return forced;
    if (!this.#options.isRunning(id)) return 'unused';
    if (this.#clock.now() - registeredAtMs < this.#options.healthyAfterMs(id)) return 'initial';
    return this.#options.isHealthy(id) ? 'healthy' : 'unhealthy';
  }

  /** Targets that requests to this URL reach now; null where no balancer in service has it. */
  targetsBehind(url: string): string[] | null {
    const state = [...this.#balancers.values()].find((s) => s.balancer.url === url);
    if (state === undefined || this.#clock.now() < state.activeAtMs) return null;
    return [...state.targets].flatMap(([id, atMs]) => (this.#healthOf(id, atMs) === 'healthy' ? [id] : []));
  }

  async whyUnhealthy(balancer: Balancer, instanceId: string): Promise<string | null> {
    this.#record('whyUnhealthy', instanceId);
    const health = (await this.health(balancer)).get(instanceId);
    if (health === undefined || health === 'healthy') return null;
    return health === 'unused' ? 'Target.NotInUse' : 'Target.ResponseCodeMismatch: Health checks failed';
  }

  async deregister(balancer: Balancer, instanceId: string): Promise<void> {
    this.#record('deregister', instanceId);
    this.#find(balancer)?.targets.delete(instanceId);
  }

  async remove(balancer: Balancer): Promise<void> {
    this.#record('remove', balancer.loadBalancerArn);
    for (const [name, state] of this.#balancers) {
      if (state.balancer.targetGroupArn === balancer.targetGroupArn) this.#balancers.delete(name);
    }
  }

  async removeByName(name: string): Promise<void> {
    this.#record('removeByName', name);
    this.#balancers.delete(name);
  }

  async list(owner: string): Promise<OwnedBalancer[]> {
    this.#record('list', owner);
    return [...this.#balancers].flatMap(([name, { balancer, createdAtMs, tags }]) => {
      if (tags[TAG.owner] !== owner) return [];
      const { targetGroupArn, shared } = balancer;
      const own = shared
        ? { loadBalancerArn: null, createdAtMs: null }
        : { loadBalancerArn: balancer.loadBalancerArn, createdAtMs };
      return [{ name, ...own, targetGroupArn, tags: { ...tags } }];
    });
  }

  async removeOwned(owned: OwnedBalancer): Promise<void> {
    this.#record('removeOwned', owned.name);
    this.#balancers.delete(owned.name);
  }

  /** Names of what exists: empty when nothing was left behind. */
  names(): string[] {
    return [...this.#balancers.keys()];
  }

  #find(balancer: Balancer): State | undefined {
    return [...this.#balancers.values()].find((s) => s.balancer.targetGroupArn === balancer.targetGroupArn);
  }

  /** A balancer with a name of its own: not the target group of a run behind an existing one. */
  #named(nameOrArn: string): State | undefined {
    return [...this.#balancers.values()].find(
      (s) => !s.balancer.shared && (s.request.name === nameOrArn || s.balancer.loadBalancerArn === nameOrArn),
    );
  }

  #existing(balancer: Balancer): State {
    const state = this.#find(balancer);
    if (!state) throw new AppError('aws-not-found', `TargetGroupNotFound: ${balancer.targetGroupArn}`);
    return state;
  }

  #record(name: MemoryBalancerCall['name'], detail: string): void {
    const call = { name, atMs: this.#clock.now(), detail };
    this.calls.push(call);
    this.onCall(call);
  }
}
