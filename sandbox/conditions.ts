/**
 * How AWS is today: what stays so until it is told otherwise, beside the counted rules of faults.ts. All of it is off at
 * first, because a dry run wants a quiet cloud.
 */
import { z } from 'zod';

const ms = z.int().min(0).max(86_400_000);
const count = z.int().min(0).max(1_000_000);

/** What one instance type in one zone still has; `*` stands for any. The first entry that fits a launch counts. */
const poolSchema = z.strictObject({
  type: z.string().min(1).max(50),
  zone: z.string().min(1).max(50),
  left: count,
  /** After so long there is enough of it again; left out: never. */
  recoversAfterMs: ms.exactOptional(),
});

/** A change of conditions: what is left out stays as it is. */
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
  /** So long from a launch or a start until the machine runs; counts for what is launched or started from then on. */
  pendingMs: number;
  /** So long an image is being made; AWS: minutes. Counts for images made from then on. */
  imagePendingMs: number;
  /** For so long after its launch an instance is NotFound to every call but the launch itself. */
  unknownMs: number;
  /** For so long after its launch an instance shows no tags, and no filter finds it by them. */
  untaggedMs: number;
  pools: CapacityPool[];
  /** vCPUs that may be in use at once; null for no quota. */
  vcpuQuota: number | null;
  /** For so long after its end an instance still counts against the quota. */
  vcpuReleaseMs: number;
  /** AWS's request token buckets times this; null for no limits. */
  requestLimits: number | null;
  /** For so long a terminated instance is shown; AWS: about an hour. */
  terminatedShownMs: number;
  /** So many instances, in the order of their launches, show one public address, as behind a NAT. */
  instancesPerAddress: number;
  /** Nodes of each balancer; each has its own round robin, and a connection belongs to one. */
  balancerNodes: number;
  /** Where the route table sends what is for the internet. It is shown only: requests leave as ever. */
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

  /** As they are now. Only the pools' counts are changed by others. */
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
