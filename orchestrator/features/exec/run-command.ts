/** Runs a command on the instances of a run: the use case of `orchestrator exec`. */
import { AppError } from '../../../shared/domain/errors.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { CommandResult, CommandRunner } from './command-runner.ts';
import type { InstanceRecord, RunReader, RunRecord } from '../../core/model/stores.ts';

/** The result of one instance, with its place in the run. */
export interface HostResult extends EpochId, CommandResult {
  address: string | null;
}

export interface ExecRequest {
  /** The slots to run on; empty for all. */
  slots: readonly number[];
  command: string;
  /** The time limit on each instance. */
  timeoutMs: number;
}

/** Runs a command, and gives the results in the order of slot and epoch. Throws `usage` when no such instance is up. */
export async function runOnFleet(
  { run, fleet, runner }: { run: RunRecord; fleet: RunReader['fleet']; runner: CommandRunner },
  { slots, command, timeoutMs }: ExecRequest,
  signal: AbortSignal,
): Promise<HostResult[]> {
  const up = (await fleet.instances()).filter(isUp);
  const missing = slots.find((slot) => !up.some((i) => i.slot === slot));
  if (up.length === 0 || missing !== undefined)
    throw new AppError('usage', `run ${run.id} has no instance${missing === undefined ? '' : ` in slot ${missing}`}`, {
      hint: `List them with: orchestrator status ${run.id}`,
    });
  const wanted = slots.length === 0 ? up : up.filter(({ slot }) => slots.includes(slot));
  const results = await runner.run({ instanceIds: wanted.map((i) => i.instanceId!), command, timeoutMs }, signal);
  return wanted.map(({ slot, epoch, address }, i) => ({ slot, epoch, address, ...results[i]! }));
}

/** True for an instance that may be up, also a lost one, which is then the one to look at. */
const isUp = ({ instanceId, phase }: InstanceRecord): boolean =>
  instanceId !== null && phase !== 'terminating' && phase !== 'terminated';

/** Throws `run-ended`, and `config-invalid` when its instances were launched without the agent. */
export function assertTakesCommands({ id, phase, settings }: RunRecord): void {
  if (isRunEnd(phase)) throw new AppError('run-ended', `run ${id} has ended already: ${phase}`);
  if (settings.aws.commands === true) return;
  throw new AppError('config-invalid', `the instances of run ${id} take no commands`, {
    hint: 'Set aws.commands: true before a run begins, on AWS with the rights of: orchestrator setup --commands',
  });
}
