/**
 * Where offers go: the balancers in service, each with the number of instances behind it, or the instances themselves.
 * Pure.
 */
import { API_PORT } from '../../../../shared/wire/instance-api.ts';
import { DIRECT } from '../../cloud/load-balancer.ts';
import { isGivenUp } from '../../model/instance-state.ts';
import { regionNamed } from '../../model/regions.ts';
import type { InstanceRecord } from '../../model/stores.ts';
import type { World } from '../../model/world.ts';

export interface OfferTarget {
  /** The URL of the balancer; without one, of an instance. */
  url: string;
  /** Healthy instances behind it; at least one. */
  healthy: number;
}

/** The targets of offers; empty while no instance is healthy. */
export function offerTargets({ regions, fleet, targets }: World): OfferTarget[] {
  const healthy = new Map<string, InstanceRecord[]>();
  for (const record of fleet.latest.values()) {
    if (isGivenUp(record) || !record.registered || record.instanceId === null) continue;
    if (targets.get(record.instanceId) !== 'healthy') continue;
    const { name } = regionNamed(regions, record.request.region);
    const there = healthy.get(name);
    if (there === undefined) healthy.set(name, [record]);
    else there.push(record);
  }
  return regions.flatMap(({ name, balancer, balancerActive, cloud }) => {
    const there = healthy.get(name) ?? [];
    if (balancer === null || !balancerActive || there.length === 0) return [];
    if (!balancer.url.startsWith(DIRECT)) return [{ url: balancer.url, healthy: there.length }];
    return there.flatMap((record) => {
      const address = cloud?.find(record)?.privateAddress ?? null;
      return address === null ? [] : [{ url: `http://${address}:${API_PORT}`, healthy: 1 }];
    });
  });
}

/** Takes turns: over many turns each balancer gets offers in proportion to its healthy instances, evenly mixed. */
export class OfferTurns {
  readonly #credit = new Map<string, number>();

  /** The next of those given. */
  next(from: readonly OfferTarget[]): OfferTarget | undefined {
    let best: OfferTarget | undefined;
    for (const target of from) {
      this.#credit.set(target.url, this.#of(target) + target.healthy);
      if (best === undefined || this.#of(target) > this.#of(best)) best = target;
    }
    if (best !== undefined) this.#credit.set(best.url, this.#of(best) - from.reduce((sum, t) => sum + t.healthy, 0));
    return best;
  }

  #of({ url }: OfferTarget): number {
    return this.#credit.get(url) ?? 0;
  }
}
