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

/**
 * Why EC2 refuses a launch:
 *
 * pool         no machine of this type in this zone for now; another pool may have one
 * zone         this type is not offered in this zone: another type or zone may work
 * type         this account may not launch this type, wherever: another type may work
 * quota        the account may not have more vCPUs
 * throttled    too many calls: later
 * spent        what this token launched is dead; another token may work
 * credentials  the keys have run out, are missing or are not taken: later, when somebody has rotated them
 * denied       a right is missing, or IAM does not show it yet: later, when somebody has granted it
 * invalid      a parameter is wrong for this pool
 */
export const REFUSAL_CAUSES = [
  'pool',
  'zone',
  'type',
  'quota',
  'throttled',
  'spent',
  'credentials',
  'denied',
  'invalid',
] as const;
export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

/** What EC2 answered to a launch that it did not carry out as far as we know. Stored with the claim. */
export type LaunchFailure =
  /** EC2 said no: this call launched nothing. `mayExist`: an earlier call with the same token got no answer, and may have. */
  | { kind: 'refused'; cause: RefusalCause; message: string; mayExist?: true }
  /** No answer: it may or may not exist. Look it up by its tags; then, unless its token is used, send the same request again. */
  | { kind: 'unknown'; message: string; tokenUsed?: true };

/** A normal result, not an exception: capacity, quota and throttling are part of every launch. */
export type LaunchResult = { kind: 'launched'; instance: CloudInstance } | LaunchFailure;

/** EC2's word for the last change of an instance's state: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html */
export interface StateReason {
  /** Such as `Client.VolumeLimitExceeded` or `Server.InternalError`. */
  code: string;
  message: string;
}

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
  /** Why it is in its state; null or left out where EC2 does not say. */
  stateReason?: StateReason | null;
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
