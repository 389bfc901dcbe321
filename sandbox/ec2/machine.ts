/** The machine behind an instance: host/ boots it as a process; tests record calls. */

export interface MachineSpec {
  id: string;
  address: string;
  /** The same address, or null when the launch requested no public one. */
  publicAddress: string | null;
  /** The user data as sent, decoded; empty for none. */
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

/** A shell script at work on a machine. */
export interface ShellRun {
  /** Resolves when the script has ended. Never rejects. */
  done: Promise<ShellEnd>;
  /** Kills it and all that it has started; without effect once it has ended. */
  cancel(): void;
}

export interface ShellEnd {
  how: 'ended' | 'timed-out' | 'cancelled';
  /** -1 when the shell was killed. */
  exitCode: number;
  /** The beginning of each output. */
  stdout: string;
  stderr: string;
}

/** Events on a running machine that EC2 does not see. */
export const MACHINE_EVENTS = ['freeze', 'thaw', 'kill', 'crash'] as const;
export type MachineEvent = (typeof MACHINE_EVENTS)[number];

export interface Machine {
  /** The process of the program started by the user data; null while it is not running. */
  readonly pid: number | null;
  /** Stays after the machine, for debugging. */
  readonly folder: string;
  /** Boots it; the first boot runs its user data, later boots only start what that installed. Returns at once. */
  powerOn(): void;
  /** Ends all its processes; resolves when none is left. Idempotent. */
  powerOff(): Promise<void>;
  /** The last 64 KB of the console at most. */
  consoleOutput(): Buffer;
  /**
   * `freeze` and `thaw` pause and continue its program; `kill` kills it, and it is restarted; `crash` kills it
   * permanently while the machine seems to run, as after a kernel panic. False when no program is running.
   */
  inject(event: MachineEvent): boolean;
  /** True once its user data has started the SSM agent. */
  readonly hasAgent: boolean;
  /** Runs the script by a shell in the machine's folder, with the environment of its program. */
  execute(script: string, timeoutMs: number): ShellRun;
  /** Closes the console's file, when the machine is off. */
  close(): void;
}
