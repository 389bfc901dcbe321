/** An instance in EC2. Only the fleet (fleet.ts) changes one. */
import type { Machine } from './machine.ts';

/** EC2's states with their codes. */
export const STATE_CODES = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
} as const;
export type InstanceState = keyof typeof STATE_CODES;

/** An instance's launch parameters; they never change. */
export interface LaunchSpec {
  imageId: string;
  instanceType: string;
  architecture: 'x86_64' | 'arm64';
  subnetId: string;
  vpcId: string;
  zone: string;
  securityGroupIds: readonly string[];
  /** Name of the instance profile and of its role; null for none. */
  instanceProfile: string | null;
  /** Base64 as sent; empty for none. */
  userData: string;
  shutdownBehavior: 'stop' | 'terminate';
  publicAddress: boolean;
  metadata: { httpTokens: 'required' | 'optional'; hopLimit: number };
  keyName: string | null;
  clientToken: string | null;
  /** The attribute as launched; ModifyInstanceAttribute changes the instance's own value. */
  terminationProtection: boolean;
}

export interface Instance extends LaunchSpec {
  readonly id: string;
  readonly reservationId: string;
  readonly volumeId: string;
  readonly interfaceId: string;
  /** Increases with every launch: the order of listings and their paging key. */
  readonly sequence: number;
  /** Its only address, used as public and private address. */
  readonly address: string;
  /** Its public address as shown: its own, or one shared with other instances behind a NAT. */
  readonly outsideAddress: string;
  readonly launchedAtMs: number;
  state: InstanceState;
  /** The machine; null until the instance runs for the first time. */
  machine: Machine | null;
  /** EC2's reason for the state; empty when no request caused it. */
  reason: string;
  reasonCode: string;
  /** EC2's message for the code, where it is not derived from `reason`. */
  reasonMessage: string | null;
  /** Why it will end before it runs; null for one that starts normally. */
  death: { code: string; message: string } | null;
  /** TerminateInstances is refused. */
  isProtected: boolean;
  /** When it last left `running` or `pending`; null before that and while it is running again. */
  endedAtMs: number | null;
}

export interface StateChange {
  instance: Instance;
  previous: InstanceState;
}
