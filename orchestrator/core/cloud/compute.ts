/** The port to EC2: only the calls that crawlfleet makes, in its own terms. */

/** What a root volume has beside what its image says; what is left out is the image's. */
export interface VolumeSettings {
  /** GiB. */
  sizeGb?: number;
  type?: 'gp3' | 'gp2';
  /** The volume is encrypted, with the account's default key unless a key is named. */
  encrypted?: true;
  /** ARN. */
  kmsKey?: string;
}

/** Everything one slot's RunInstances call sends. Stored before the call; a retry sends exactly this. */
export interface LaunchRequest {
  clientToken: string;
  /** The region; omitted in claims of earlier versions: the run's first. */
  region?: string;
  instanceType: string;
  imageId: string;
  subnetId: string;
  securityGroupIds: string[];
  /** Name of the instance profile; null for none. */
  instanceProfile: string | null;
  /** The root volume; left out: it is as the image has it. */
  volume?: VolumeSettings;
  /** Plain text; at most 16 KB. */
  userData: string;
  /** The tags set at launch: crawlfleet:owner, :run, :slot, :epoch, :expires-at and Name. */
  tags: Record<string, string>;
}

/**
 * Why EC2 refuses a launch:
 *
 * pool         no capacity for this type in this zone for now; another pool may have some
 * zone         this type is not offered in this zone: another type or zone may work
 * type         this account may not launch this type in any zone: another type may work
 * quota        the account's vCPU quota is used up
 * throttled    too many calls: retry later
 * spent        the instance this token launched is dead; another token may work
 * credentials  the keys have expired, are missing or are rejected: retry once they have been rotated
 * denied       a permission is missing, or IAM does not show it yet: retry once it has been granted
 * invalid      a parameter is invalid for this pool
 */
export type RefusalCause =
  'pool' | 'zone' | 'type' | 'quota' | 'throttled' | 'spent' | 'credentials' | 'denied' | 'invalid';

/** EC2's answer to a launch that, as far as we know, did not happen. Stored with the claim. */
export type LaunchFailure =
  /**
   * EC2 refused: this call launched nothing. `mayExist`: an earlier call with the same token got no answer and may
   * have.
   */
  | { kind: 'refused'; cause: RefusalCause; message: string; mayExist?: true }
  /**
   * No answer: the instance may exist. Find it by its tags; if there is none and the token is unused, resend the
   * request.
   */
  | { kind: 'unknown'; message: string; tokenUsed?: true };

/** A normal result, not an exception: capacity, quota and throttling are part of every launch. */
export type LaunchResult = { kind: 'launched'; instance: CloudInstance } | LaunchFailure;

/**
 * Why EC2 last changed an instance's state: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html
 */
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
  /** The public address; null until EC2 assigns one, and again when stopped. */
  publicAddress: string | null;
  privateAddress: string | null;
  instanceType: string;
  zone: string | null;
  launchedAtMs: number;
  tags: Record<string, string>;
  /** Why it is in its state; null or left out where EC2 gives no reason. */
  stateReason?: StateReason | null;
}

export interface SubnetInfo {
  id: string;
  zone: string;
  vpcId: string;
  /** True when each instance in it gets its own public address. */
  publicAddresses: boolean;
}

/** How the machine fetches pages. */
export type ImagePurpose = 'http' | 'browser';

export interface Compute {
  launch(request: LaunchRequest): Promise<LaunchResult>;
  /** Every instance with this tag, in any state that EC2 still shows; all pages. */
  list(tag: { key: string; value: string }): Promise<CloudInstance[]>;
  /** Requests termination; an id unknown to EC2 counts as done. Idempotent. */
  terminate(instanceIds: readonly string[]): Promise<void>;
  /** The boot console output; null when there is none (yet). */
  consoleOutput(instanceId: string): Promise<string | null>;
  /** The subnets to launch in: the given ones (ids, or `tag:KEY=VALUE`), or with an empty list the default VPC's. */
  subnets(ids: readonly string[]): Promise<SubnetInfo[]>;
  /**
   * The given groups (ids, or `tag:KEY=VALUE` for those with this tag), or with an empty list the VPC's default group.
   */
  securityGroups(ids: readonly string[], vpcId: string): Promise<string[]>;
  /**
   * The image to boot: the given one, checked to exist, or with null the newest that fits the architecture. For a
   * browser that is the account's own image with Chromium, else one on which Chromium can be installed.
   */
  image(id: string | null, architecture: 'x86_64' | 'arm64', purpose?: ImagePurpose): Promise<string>;
}

/** What a security group is for, as tagged by `orchestrator setup`. */
export const ROLE = { key: 'crawlfleet:role', values: ['instance', 'balancer'] } as const;

/** Tag keys (docs/architecture.md, "Tags"). */
export const TAG = {
  owner: 'crawlfleet:owner',
  run: 'crawlfleet:run',
  slot: 'crawlfleet:slot',
  epoch: 'crawlfleet:epoch',
  expiresAt: 'crawlfleet:expires-at',
} as const;
