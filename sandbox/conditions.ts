/**
 * The current conditions of the simulated AWS, which persist until changed, unlike the counted rules of faults.ts. All
 * are off by default, because a dry run needs a quiet cloud.
 */
import { z } from 'zod';

const ms = z.int().min(0).max(86_400_000);
const count = z.int().min(0).max(1_000_000);

/** Remaining capacity of an instance type in a zone; `*` matches any. The first entry that matches a launch counts. */
const poolSchema = z.strictObject({
  type: z.string().min(1).max(50),
  zone: z.string().min(1).max(50),
  left: count,
  /** Time until the capacity recovers; left out: never. */
  recoversAfterMs: ms.exactOptional(),
});

/** A change of conditions: fields left out stay unchanged. */
export const conditionsSchema = z.strictObject({
  pendingMs: ms.exactOptional(),
  imagePendingMs: ms.exactOptional(),
  unknownMs: ms.exactOptional(),
  untaggedMs: ms.exactOptional(),
  pools: z.array(poolSchema).max(1_000).exactOptional(),
  vcpuQuota: count.nullable().exactOptional(),
  vcpuReleaseMs: ms.exactOptional(),
  requestLimits: z.number().positive().max(1_000).nullable().exactOptional(),
  terminatedShownMs: ms.exactOptional(),
  instancesPerAddress: z.int().min(1).max(1_000).exactOptional(),
  balancerNodes: z.int().min(1).max(100).exactOptional(),
  defaultRoute: z.enum(['internet-gateway', 'nat-gateway', 'none']).exactOptional(),
});
export type ConditionsChange = z.infer<typeof conditionsSchema>;

export interface CapacityPool {
  type: string;
  zone: string;
  left: number;
  /** Null: it never recovers. */
  recoversAtMs: number | null;
}

export interface Conditions {
  /** Time from a launch or start until the machine runs; applies to later launches and starts. */
  pendingMs: number;
  /** Time to make an image; AWS: minutes. Applies to later images. */
  imagePendingMs: number;
  /** How long after its launch an instance is NotFound to every other call. */
  unknownMs: number;
  /** How long after its launch an instance shows no tags and matches no tag filter. */
  untaggedMs: number;
  pools: CapacityPool[];
  /** Maximum vCPUs in use at once; null for no quota. */
  vcpuQuota: number | null;
  /** How long after its end an instance still counts against the quota. */
  vcpuReleaseMs: number;
  /** Factor on AWS's request token buckets; null for no limits. */
  requestLimits: number | null;
  /** How long a terminated instance stays visible; AWS: about an hour. */
  terminatedShownMs: number;
  /** Number of instances, in launch order, that share one public address, as behind a NAT. */
  instancesPerAddress: number;
  /** Nodes of each load balancer; each has its own round robin, and a connection belongs to one. */
  balancerNodes: number;
  /** The default route in the route table. Display only: requests are not affected. */
  defaultRoute: 'internet-gateway' | 'nat-gateway' | 'none';
}

const usual = (): Conditions => ({
  pendingMs: 150,
  imagePendingMs: 500,
  unknownMs: 0,
  untaggedMs: 0,
  pools: [],
  vcpuQuota: null,
  vcpuReleaseMs: 0,
  requestLimits: null,
  terminatedShownMs: 600_000,
  instancesPerAddress: 1,
  balancerNodes: 1,
  defaultRoute: 'internet-gateway',
});

export class ConditionBoard {
  #now = usual();

  /** The current values. Other files change only the pools' counts. */
  get now(): Readonly<Conditions> {
    return this.#now;
  }

  change({ pools, ...rest }: ConditionsChange, nowMs: number): void {
    Object.assign(this.#now, rest);
    if (pools === undefined) return;
    this.#now.pools = pools.map(({ recoversAfterMs, ...pool }) => ({
      ...pool,
      recoversAtMs: recoversAfterMs === undefined ? null : nowMs + recoversAfterMs,
    }));
  }

  reset(): void {
    this.#now = usual();
  }
}
