/** The port from EC2 to its machines: host/ boots them as processes; tests record calls. */

export interface MachineSpec {
  id: string;
  address: string;
  /** The same address, or null when the launch requested no public one. */
  publicAddress: string | null;
  /** As sent, decoded; empty for none. */
  userData: string;
  zone: string;
  region: string;
  instanceType: string;
  imageId: string;
  architecture: string;
  /** Role whose credentials the metadata service provides; null for none. */
  role: string | null;
  launchedAtMs: number;
}

export interface MachineStatus {
  /** Of the program started by the user data; null while it is not running. */
  pid: number | null;
  folder: string;
}

/** Events on a running machine that EC2 does not see. */
export const MACHINE_EVENTS = ['freeze', 'thaw', 'kill', 'crash'] as const;
export type MachineEvent = (typeof MACHINE_EVENTS)[number];

export interface MachineHost {
  /** Boots it; the first boot runs its user data, later boots only start what that installed. Returns at once. */
  powerOn(machine: MachineSpec): void;
  /** Ends all its processes; resolves when none is left. Idempotent. */
  powerOff(id: string): Promise<void>;
  /** Its console output, at most the last 64 KB; null when it never ran. */
  consoleOutput(id: string): Buffer | null;
  status(id: string): MachineStatus | null;
  /**
   * `freeze` and `thaw` pause and continue its program; `kill` kills it, and it is restarted; `crash` kills it
   * permanently while the machine seems to run, as after a kernel panic. False when no program is running.
   */
  befall(id: string, event: MachineEvent): boolean;
  /** Forgets a machine that is off. Its folder stays, for debugging. */
  forget(id: string): void;
}
