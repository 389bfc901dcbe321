/**
 * The current conditions of the simulated AWS, which persist until changed, unlike the counted rules of faults.ts. All
 * are off by default, because a dry run needs a quiet cloud.
 */
import { z } from 'zod';
import { INSTANCE_ROLES } from './instance-role.ts';

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
  /** Time from a launch or start until the machine runs; applies to later launches and starts. */
  pendingMs: ms.exactOptional(),
  /** Time to make an image; AWS: minutes. Applies to later images. */
  imagePendingMs: ms.exactOptional(),
  /** How long after its launch an instance is NotFound to every other call. */
  unknownMs: ms.exactOptional(),
  /** How long after its launch an instance shows no tags and matches no tag filter. */
  untaggedMs: ms.exactOptional(),
  pools: z.array(poolSchema).max(1_000).exactOptional(),
  /** Maximum vCPUs in use at once; null for no quota. */
  vcpuQuota: count.nullable().exactOptional(),
  /** How long after its end an instance still counts against the quota. */
  vcpuReleaseMs: ms.exactOptional(),
  /** Factor on AWS's request token buckets; null for no limits. */
  requestLimits: z.number().positive().max(1_000).nullable().exactOptional(),
  /** How long a terminated instance stays visible; AWS: about an hour. */
  terminatedShownMs: ms.exactOptional(),
  /** Number of instances, in launch order, that share one public address, as behind a NAT. */
  instancesPerAddress: z.int().min(1).max(1_000).exactOptional(),
  /** Nodes of each load balancer; each has its own round robin, and a connection belongs to one. */
  balancerNodes: z.int().min(1).max(100).exactOptional(),
  /**
   * Regions that fail whole: calls there are answered 503, their load balancers drop every connection, and their
   * machines lose their power permanently.
   */
  outages: z.array(z.string().min(1).max(50)).max(50).exactOptional(),
  /** The default route in the route table. Display only: requests are not affected. */
  defaultRoute: z.enum(['internet-gateway', 'nat-gateway', 'none']).exactOptional(),
  /** ARN of the KMS key that encrypts volumes by default; null: they are not encrypted. Display only. */
  ebsKmsKey: z.string().min(1).max(300).nullable().exactOptional(),
  /** Keys of tags that an organisation's policy demands of everything that is created. */
  tagPolicy: z.array(z.string().min(1).max(128)).max(50).exactOptional(),
  /** What the policy of the instances' role allows. */
  instanceRole: z.enum(INSTANCE_ROLES).exactOptional(),
});
export type ConditionsChange = z.infer<typeof conditionsSchema>;

export interface Conditions extends Required<Omit<ConditionsChange, 'pools'>> {
  /** A pool with `recoversAtMs: null` never recovers. */
  pools: { type: string; zone: string; left: number; recoversAtMs: number | null }[];
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
  outages: [],
  defaultRoute: 'internet-gateway',
  ebsKmsKey: null,
  tagPolicy: [],
  instanceRole: 'own-folder',
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
