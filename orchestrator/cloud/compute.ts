/** The port to EC2: only the calls we make, in our own words. */

/** Everything RunInstances is asked for one slot. Stored before the call; a retry sends exactly this. */
export interface LaunchRequest {
  clientToken: string;
  instanceType: string;
  imageId: string;
  subnetId: string;
  securityGroupIds: string[];
  /** Name of the instance profile; null for none. */
  instanceProfile: string | null;
  /** Plain text; at most 16 KB. */
  userData: string;
  /** On the instance from its first moment: crawlfleet:owner, :run, :slot, :epoch, :expires-at and Name. */
  tags: Record<string, string>;
}

/** A normal result, not an exception: capacity, quota and throttling are part of every launch. */
export type LaunchResult =
  | { kind: 'launched'; instance: CloudInstance }
  /**
   * EC2 said no. `pool` = another type or zone may work; `quota` = only fewer vCPUs; `throttled` = later; `spent` = what this
   * token launched is dead, another token may work; `denied` and `invalid` = never.
   */
  | { kind: 'refused'; cause: 'pool' | 'quota' | 'throttled' | 'spent' | 'denied' | 'invalid'; message: string }
  /** No answer: it may or may not exist. Look it up by its tags; then, unless its token is used, send the same request again. */
  | { kind: 'unknown'; message: string; tokenUsed?: true };

export const CLOUD_STATES = ['pending', 'running', 'shutting-down', 'terminated', 'stopping', 'stopped'] as const;
export type CloudState = (typeof CLOUD_STATES)[number];

export interface CloudInstance {
  id: string;
  state: CloudState;
  /** Null until EC2 has given one, and again when stopped. */
  publicAddress: string | null;
  privateAddress: string | null;
  instanceType: string;
  zone: string | null;
  launchedAtMs: number;
  tags: Record<string, string>;
}

export interface SubnetInfo {
  id: string;
  zone: string;
  vpcId: string;
  /** True when instances in it get a public address of their own. */
  publicAddresses: boolean;
}

/** What the machine fetches pages with. */
export type ImagePurpose = 'http' | 'browser';

export interface Compute {
  launch(request: LaunchRequest): Promise<LaunchResult>;
  /** Every instance with this tag, in any state EC2 still shows; all pages. */
  list(tag: { key: string; value: string }): Promise<CloudInstance[]>;
  /** Asks for termination; an id EC2 does not know counts as done. Idempotent. */
  terminate(instanceIds: readonly string[]): Promise<void>;
  /** What the machine printed while booting; null when there is nothing (yet). */
  consoleOutput(instanceId: string): Promise<string | null>;
  /** The subnets to launch in: the given ones, or with an empty list the default VPC's. */
  subnets(ids: readonly string[]): Promise<SubnetInfo[]>;
  /** The given groups (ids, or `tag:KEY=VALUE` for those with this tag), or with an empty list the VPC's default group. */
  securityGroups(ids: readonly string[], vpcId: string): Promise<string[]>;
  /**
   * The image to boot: the given one checked to exist, or with null the newest that fits the architecture. For a browser
   * that is the account's own with Chromium on it, else one on which it can be installed.
   */
  image(id: string | null, architecture: 'x86_64' | 'arm64', purpose?: ImagePurpose): Promise<string>;
}

/** What a security group is for: as `orchestrator setup` tags them. */
export const ROLE = { key: 'crawlfleet:role', values: ['instance', 'balancer'] } as const;

/** Tag keys (docs/architecture.md, "Tags"). */
export const TAG = {
  owner: 'crawlfleet:owner',
  run: 'crawlfleet:run',
  slot: 'crawlfleet:slot',
  epoch: 'crawlfleet:epoch',
  expiresAt: 'crawlfleet:expires-at',
} as const;
