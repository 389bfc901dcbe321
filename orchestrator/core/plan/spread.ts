/** How a fleet is divided among regions: each within its limits, by weight or cheapest first. Pure. */

/** A region in which a run may launch instances. */
export interface PlanRegion {
  region: string;
  maxInstances: number;
  /** The weight; null: 1, where another region has a weight. */
  weight: number | null;
  /** vCPUs a run may use there; null when unknown. */
  vcpuQuota: number | null;
}

/** Most instances that the region's limits allow. @param vcpus of one instance */
export const roomIn = ({ maxInstances, vcpuQuota }: PlanRegion, vcpus: number): number =>
  Math.min(maxInstances, vcpuQuota === null ? Infinity : Math.floor(vcpuQuota / vcpus));

/** Instances in one region. */
export interface Placed {
  region: string;
  instances: number;
}

/**
 * The regions that get instances, in the given order. What no region has room for goes to the last one.
 * @param priceOf USD per hour of an instance in the region
 */
export function spread(
  regions: readonly PlanRegion[],
  instances: number,
  { vcpus, priceOf }: { vcpus: number; priceOf: (region: string) => number },
): Placed[] {
  const places = regions.map((region) => ({ ...region, room: roomIn(region, vcpus), instances: 0 }));
  const isWeighted = regions.some(({ weight }) => weight !== null);
  const cheapest = places.toSorted((a, b) => priceOf(a.region) - priceOf(b.region));
  for (let n = 0; n < instances; n++) {
    const open = cheapest.filter((place) => place.instances < place.room);
    const next = isWeighted ? leastFilled(open) : open[0];
    (next ?? cheapest.at(-1)!).instances++;
  }
  return places.filter((place) => place.instances > 0).map(({ region, instances: n }) => ({ region, instances: n }));
}

/** The one that would be furthest below its weight with one more. */
function leastFilled<T extends { weight: number | null; instances: number }>(places: readonly T[]): T | undefined {
  const filled = ({ weight, instances }: T): number => (instances + 1) / (weight ?? 1);
  return places.toSorted((a, b) => filled(a) - filled(b))[0];
}
