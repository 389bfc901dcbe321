/** Shell commands on running instances, without a login: what `orchestrator exec` needs of the cloud. */

export interface CommandRunner extends Disposable {
  /**
   * Runs the command as root on every instance at once, and resolves when each has a result, in the order of the ids.
   * Never fails for a single instance. When `signal` aborts, the command is cancelled where it still runs. Throws
   * `aws-denied` without the rights for it, `aws-throttled` and `aws-failed` when it could not be sent.
   */
  run(request: CommandRequest, signal: AbortSignal): Promise<CommandResult[]>;
}

export interface CommandRequest {
  instanceIds: readonly string[];
  /** Lines for a POSIX shell. */
  command: string;
  /** Time limit on the instance; a command that exceeds it is killed. At least a second. */
  timeoutMs: number;
}

/**
 * ended        it ran; the exit code is known
 * timed-out    it was killed at the time limit
 * cancelled    it was cancelled before its end
 * unreachable  it never ran there: no agent is registered, or the agent does not answer
 * unknown      no end was seen in time: it may still run
 */
export type CommandStatus = 'ended' | 'timed-out' | 'cancelled' | 'unreachable' | 'unknown';

export interface CommandResult {
  instanceId: string;
  status: CommandStatus;
  /** The exit code; null unless the command ended. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
  /** The service has kept only the beginning of the output. */
  truncated: boolean;
}
