/** Where offers go: the balancers in service, each with the number of instances behind it. Pure. */
import { isGivenUp } from '../model/instance-state.ts';
import { regionNamed } from '../model/regions.ts';
import type { World } from '../model/world.ts';

export interface OfferTarget {
  /** Of the balancer. */
  url: string;
  /** Healthy instances behind it; at least one. */
  healthy: number;
}

/** Empty while no balancer has a healthy instance. */
export function offerTargets({ regions, fleet, targets }: World): OfferTarget[] {
  const counts = new Map<string, number>();
  for (const record of fleet.latest.values()) {
    if (isGivenUp(record) || !record.registered || record.instanceId === null) continue;
    if (targets.get(record.instanceId) !== 'healthy') continue;
    const { name } = regionNamed(regions, record.request.region);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return regions.flatMap(({ name, balancer, balancerActive }) => {
    const healthy = counts.get(name);
    return balancer === null || !balancerActive || healthy === undefined ? [] : [{ url: balancer.url, healthy }];
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
