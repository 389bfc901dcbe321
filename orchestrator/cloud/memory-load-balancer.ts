/** ELBv2 in memory, for unit tests and simulation: keeps state, records its calls, and can be told to fail. */
import { AppError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Balancer, BalancerRequest, LoadBalancer, TargetHealth } from './load-balancer.ts';

export interface MemoryLoadBalancerOptions {
  clock: Clock;
  /** Whether an instance can be a target: MemoryCompute's isRunning. Default: always. */
  isRunning?: (instanceId: string) => boolean;
  /** From ensure() to active. Default 0. */
  provisioningMs?: number;
  /** From register() to healthy. Default 0. */
  healthyAfterMs?: number;
}

export interface MemoryBalancerCall {
  name: keyof LoadBalancer;
  atMs: number;
  /** Balancer name or instance id. */
  detail: string;
}

interface State {
  balancer: Balancer;
  activeAtMs: number;
  /** When each target was registered. */
  targets: Map<string, number>;
}

export class MemoryLoadBalancer implements LoadBalancer {
  readonly calls: MemoryBalancerCall[] = [];
  /** Health that a target shows instead of its own, by instance id. */
  readonly forcedHealth = new Map<string, TargetHealth>();
  /** Called before every call; throw from it to make the call fail. */
  onCall: (call: MemoryBalancerCall) => void = () => {};

  readonly #options: Required<Omit<MemoryLoadBalancerOptions, 'clock'>>;
  readonly #clock: Clock;
  readonly #balancers = new Map<string, State>();

  constructor(options: MemoryLoadBalancerOptions) {
    this.#clock = options.clock;
    this.#options = {
      isRunning: options.isRunning ?? (() => true),
      provisioningMs: options.provisioningMs ?? 0,
      healthyAfterMs: options.healthyAfterMs ?? 0,
    };
  }

  async ensure(request: BalancerRequest): Promise<Balancer> {
    this.#record('ensure', request.name);
    let state = this.#balancers.get(request.name);
    if (!state) {
      const balancer = {
        url: `http://${request.name}.balancer.memory:${request.listenPort}`,
        loadBalancerArn: `arn:memory:balancer/${request.name}`,
        targetGroupArn: `arn:memory:group/${request.name}`,
        listenerArn: `arn:memory:listener/${request.name}`,
      };
      state = { balancer, activeAtMs: this.#clock.now() + this.#options.provisioningMs, targets: new Map() };
      this.#balancers.set(request.name, state);
    }
    return { ...state.balancer };
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
    for (const [id, registeredAtMs] of this.#existing(balancer).targets) {
      const settled = this.#clock.now() - registeredAtMs >= this.#options.healthyAfterMs;
      const own: TargetHealth = !this.#options.isRunning(id) ? 'unused' : settled ? 'healthy' : 'initial';
      health.set(id, this.forcedHealth.get(id) ?? own);
    }
    return health;
  }

  async deregister(balancer: Balancer, instanceId: string): Promise<void> {
    this.#record('deregister', instanceId);
    this.#find(balancer)?.targets.delete(instanceId);
  }

  async remove(balancer: Balancer): Promise<void> {
    this.#record('remove', balancer.loadBalancerArn);
    for (const [name, state] of this.#balancers) {
      if (state.balancer.loadBalancerArn === balancer.loadBalancerArn) this.#balancers.delete(name);
    }
  }

  async removeByName(name: string): Promise<void> {
    this.#record('removeByName', name);
    this.#balancers.delete(name);
  }

  /** Names of what exists: empty when nothing was left behind. */
  names(): string[] {
    return [...this.#balancers.keys()];
  }

  #find(balancer: Balancer): State | undefined {
    return [...this.#balancers.values()].find((s) => s.balancer.loadBalancerArn === balancer.loadBalancerArn);
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
