/** An application load balancer: its settings, its listeners and their proxies. */
import type { FaultBook } from '../faults.ts';
import { type BalancerState, type Proxy, startProxy } from './proxy.ts';
import type { TargetGroup } from './target-group.ts';

export interface Listener {
  readonly arn: string;
  readonly port: number;
  readonly targetGroup: TargetGroup;
  readonly proxy: Proxy;
}

export interface LoadBalancerAbout {
  arn: string;
  name: string;
  /** Its address, which is also its DNS name: an IP literal resolves everywhere. */
  address: string;
  scheme: 'internet-facing' | 'internal';
  vpcId: string;
  subnets: readonly { id: string; zone: string }[];
  securityGroupIds: readonly string[];
  createdMs: number;
}

/** Nothing listens: connections are refused. */
const DEAF: Proxy = { close: () => Promise.resolve() };

export class LoadBalancer {
  readonly about: LoadBalancerAbout;
  readonly attributes = new Map([
    ['idle_timeout.timeout_seconds', '60'],
    ['deletion_protection.enabled', 'false'],
    ['access_logs.s3.enabled', 'false'],
    ['routing.http.drop_invalid_header_fields.enabled', 'false'],
    ['routing.http2.enabled', 'true'],
  ]);
  readonly #listeners = new Map<number, Listener>();

  readonly #faults: FaultBook;
  readonly #state: BalancerState;

  constructor(about: LoadBalancerAbout, faults: FaultBook, state: BalancerState) {
    this.about = about;
    this.#faults = faults;
    this.#state = state;
  }

  listeners(): Listener[] {
    return [...this.#listeners.values()];
  }

  listenerAt(port: number): Listener | null {
    return this.#listeners.get(port) ?? null;
  }

  /** Binds the port and starts forwarding; rejects when the port cannot be bound. */
  async listen(arn: string, port: number, targetGroup: TargetGroup): Promise<Listener> {
    const { address, subnets } = this.about;
    const proxy = this.#faults.take('unreachable-balancer')
      ? DEAF
      : await startProxy({
          address,
          port,
          group: targetGroup,
          ...this.#state,
          lostDelivery: (path) => {
            const rule = this.#faults.take('lost-delivery', (r) => path.includes(r.path ?? ''));
            return rule && (rule.status ?? 502);
          },
          idleMs: () => Number(this.attributes.get('idle_timeout.timeout_seconds')) * 1_000,
        });
    const listener: Listener = { arn, port, targetGroup, proxy };
    this.#listeners.set(port, listener);
    targetGroup.use = { loadBalancerArn: this.about.arn, address, zones: new Set(subnets.map((s) => s.zone)) };
    return listener;
  }

  async removeListener(listener: Listener): Promise<void> {
    this.#listeners.delete(listener.port);
    if (!this.listeners().some((other) => other.targetGroup === listener.targetGroup)) listener.targetGroup.use = null;
    await listener.proxy.close();
  }

  async close(): Promise<void> {
    await Promise.all(this.listeners().map((listener) => this.removeListener(listener)));
  }
}
