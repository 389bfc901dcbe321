/** What EC2 needs of the machines behind it: host/ boots them as processes; tests use a list of calls. */

export interface MachineSpec {
  id: string;
  address: string;
  /** The same address, or null when the launch asked for none that is public. */
  publicAddress: string | null;
  /** As sent, decoded; empty for none. */
  userData: string;
  zone: string;
  region: string;
  instanceType: string;
  imageId: string;
  architecture: string;
  /** Role whose credentials the metadata service gives out; null for none. */
  role: string | null;
  launchedAtMs: number;
}

export interface MachineStatus {
  /** Of the program the user data asked for; null while it is not running. */
  pid: number | null;
  folder: string;
}

/** What can befall a running machine that EC2 does not see. */
export const MACHINE_EVENTS = ['freeze', 'thaw', 'kill', 'crash'] as const;
export type MachineEvent = (typeof MACHINE_EVENTS)[number];

export interface MachineHost {
  /** Boots it; the first time its user data is carried out, later only what that installed is started. Returns at once. */
  powerOn(machine: MachineSpec): void;
  /** Ends everything on it; resolves when nothing of it runs any more. Idempotent. */
  powerOff(id: string): Promise<void>;
  /** What it printed, at most the last 64 KB; null when it never ran. */
  consoleOutput(id: string): Buffer | null;
  status(id: string): MachineStatus | null;
  /**
   * `freeze` and `thaw` stop its program and let it go on; `kill` kills it, and it is started again; `crash` kills it for
   * good, while the machine seems to run, as after a kernel panic. False when no program is running.
   */
  befall(id: string, event: MachineEvent): boolean;
  /** Forgets a machine that is off. Its folder stays, for whoever looks for the cause of something. */
  forget(id: string): void;
}
