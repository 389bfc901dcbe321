/** An instance as EC2 keeps it. Only the fleet (fleet.ts) changes one. */

/** EC2's states with the numbers it shows beside them. */
export const STATE_CODES = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
} as const;
export type InstanceState = keyof typeof STATE_CODES;

/** What an instance is launched as; nothing of it changes later. */
export interface LaunchSpec {
  imageId: string;
  instanceType: string;
  architecture: 'x86_64' | 'arm64';
  subnetId: string;
  vpcId: string;
  zone: string;
  securityGroupIds: readonly string[];
  /** Name of the instance profile, which is also its role's name; null for none. */
  instanceProfile: string | null;
  /** Base64 as it was sent; empty for none. */
  userData: string;
  shutdownBehavior: 'stop' | 'terminate';
  publicAddress: boolean;
  metadata: { httpTokens: 'required' | 'optional'; hopLimit: number };
  keyName: string | null;
  clientToken: string | null;
  /** As the launch asked; ModifyInstanceAttribute changes the instance's own. */
  terminationProtection: boolean;
}

export interface Instance extends LaunchSpec {
  readonly id: string;
  readonly reservationId: string;
  readonly volumeId: string;
  readonly interfaceId: string;
  /** Grows with every launch: the order of listings and the key of their pages. */
  readonly sequence: number;
  /** Its address for everything, public and private alike. */
  readonly address: string;
  /** What it shows to the world: its address, or one that it shares with neighbours behind a NAT. */
  readonly outsideAddress: string;
  readonly launchedAtMs: number;
  state: InstanceState;
  /** Why it is in its state, in EC2's words; empty when nobody asked for it. */
  reason: string;
  reasonCode: string;
  /** EC2's message beside the code, where it is not made of `reason`. */
  reasonMessage: string | null;
  /** Why it is to end before it runs; null for one that comes up. */
  death: { code: string; message: string } | null;
  /** TerminateInstances is refused. */
  isProtected: boolean;
  /** When it last left `running` or `pending`; null before that and while it runs again. */
  endedAtMs: number | null;
}

export interface StateChange {
  instance: Instance;
  previous: InstanceState;
}
