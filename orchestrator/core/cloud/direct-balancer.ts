/**
 * What takes the place of ELBv2 for a main server that reaches the instances itself (`aws.load_balancer: none`):
 * nothing is made, and nothing is paid. Offers go to the instances in turn (core/decide/shares/offer-targets.ts); this
 * adapter only checks their health, as a load balancer would.
 */
import { describeError } from '../../../shared/domain/errors.ts';
import { API_PORT, HEALTH_PATH } from '../../../shared/wire/instance-api.ts';
import { type CloudInstance, type Compute, TAG } from './compute.ts';
import { type Balancer, type BalancerRequest, DIRECT, type LoadBalancer, type TargetHealth } from './load-balancer.ts';

const TIMEOUT_MS = 3_000;

export class DirectBalancer implements LoadBalancer {
  readonly #compute: Pick<Compute, 'list'>;
  /** Why an instance was unhealthy at the last check. */
  readonly #reasons = new Map<string, string>();

  constructor(compute: Pick<Compute, 'list'>) {
    this.#compute = compute;
  }

  /** The URL names the run, whose instances EC2 lists: the next main server needs nothing else. */
  ensure({ tags }: Pick<BalancerRequest, 'tags'>): Promise<Balancer> {
    const nothing = { loadBalancerArn: '', targetGroupArn: '', listenerArn: '' };
    return Promise.resolve({ url: `${DIRECT}${tags[TAG.run]}`, ...nothing });
  }

  isActive(): Promise<boolean> {
    return Promise.resolve(true);
  }

  register(): Promise<'registered'> {
    return Promise.resolve('registered');
  }

  async health({ url }: Balancer): Promise<Map<string, TargetHealth>> {
    const instances = await this.#compute.list({ key: TAG.run, value: url.slice(DIRECT.length) });
    const running = instances.filter(({ state, privateAddress }) => state === 'running' && privateAddress !== null);
    return new Map(await Promise.all(running.map(async (one) => [one.id, await this.#check(one)] as const)));
  }

  async #check({ id, privateAddress }: CloudInstance): Promise<TargetHealth> {
    const reason = await fetch(`http://${privateAddress}:${API_PORT}${HEALTH_PATH}`, {
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).then(
      async (response) => {
        await response.body?.cancel();
        return response.ok ? null : `GET ${HEALTH_PATH} answers ${response.status}`;
      },
      (error: unknown) => `no answer to GET ${HEALTH_PATH}: ${describeError(error)}`,
    );
    if (reason === null) this.#reasons.delete(id);
    else this.#reasons.set(id, reason);
    return reason === null ? 'healthy' : 'unhealthy';
  }

  whyUnhealthy(_balancer: Balancer, instanceId: string): Promise<string | null> {
    return Promise.resolve(this.#reasons.get(instanceId) ?? null);
  }

  find(): Promise<null> {
    return Promise.resolve(null);
  }

  list(): Promise<[]> {
    return Promise.resolve([]);
  }

  // There is nothing to take away.
  async deregister(): Promise<void> {}
  async remove(): Promise<void> {}
  async removeByName(): Promise<void> {}
  async removeOwned(): Promise<void> {}
}
