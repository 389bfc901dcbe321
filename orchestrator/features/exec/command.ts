/** `orchestrator exec`: a shell command, or another bundle, on the instances of a running run. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { openBucket } from '../../core/cloud-access/cloud-access.ts';
import { bundleOfRun, putBundle } from '../../core/cloud-access/launch-template.ts';
import type { Config } from '../../core/config/load-config.ts';
import type { ConfigSource } from '../../core/feature.ts';
import { assertTakesCommands, type HostResult, runOnFleet } from './run-command.ts';
import { updateFleet, type UpdateReport } from './update-fleet.ts';
import { getRun, storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import { allowBundle } from '../../core/cloud-access/sandbox-process.ts';
import type { CommandRunner } from './command-runner.ts';
import { openCommandRunner } from './open-command-runner.ts';
import type { RunRecord, StoreReaders } from '../../core/model/stores.ts';
import { watchInterrupts } from '../../cli/interrupts.ts';
import type { Output } from '../../cli/output.ts';

export interface ExecOptions extends ConfigSource {
  runId: string;
  words: readonly string[];
  slots: readonly number[];
  timeoutMs: number;
}

/** The longest time limit that AWS-RunShellScript takes. */
const MAX_TIMEOUT_MS = 48 * 3_600_000;

/** Exit code 1 when the command did not end with 0 on every instance. */
export async function execCommand(options: ExecOptions, output: Output): Promise<ExitCode> {
  const { words, slots, timeoutMs } = options;
  const command = words.join(' ');
  if (command.trim() === '')
    throw new AppError('usage', 'exec needs a command', { hint: 'For example: orchestrator exec RUN -- uptime' });
  if (timeoutMs < 1_000 || timeoutMs > MAX_TIMEOUT_MS) throw new AppError('usage', '--timeout must be from 1s to 48h');
  return onRun(options, output, async ({ run, stores, runner, signal }) => {
    const hosts = await runOnFleet(
      { run, fleet: stores.of(run.id).fleet, runner },
      { slots, command, timeoutMs },
      signal,
    );
    for (const host of hosts) output.line(renderHost(host, timeoutMs));
    const exitCode = signal.aborted ? EXIT.interrupted : hosts.every(isSuccess) ? EXIT.complete : EXIT.internal;
    const failed = hosts.filter((host) => !isSuccess(host)).length;
    if (failed > 0) output.line(`! ${failed} of ${hosts.length} instances did not end with exit code 0`);
    output.document({ run: run.id, command, hosts, exitCode });
    return exitCode;
  });
}

const isSuccess = ({ status, exitCode }: HostResult): boolean => status === 'ended' && exitCode === 0;

function renderHost(host: HostResult, timeoutMs: number): string {
  const { slot, epoch, instanceId, address, stdout, stderr, truncated } = host;
  const lines = [stdout, stderr].flatMap((text) => (text === '' ? [] : text.replace(/\n$/, '').split('\n')));
  return [
    `slot ${slot}.${epoch}  ${instanceId}  ${address ?? '-'}  ${endOf(host, timeoutMs)}`,
    ...lines.map((line) => `  ${line}`),
    ...(truncated ? ['  (AWS keeps only the first 24,000 characters of stdout and 8,000 of stderr)'] : []),
  ].join('\n');
}

function endOf({ status, exitCode }: HostResult, timeoutMs: number): string {
  switch (status) {
    case 'ended':
      return `exit ${exitCode}`;
    case 'timed-out':
      return `killed after ${formatDuration(timeoutMs)} (--timeout)`;
    case 'cancelled':
      return 'cancelled';
    case 'unreachable':
      return 'not reached: no SSM agent answers; it may still boot, or lack the rights of orchestrator setup --commands';
    case 'unknown':
      return 'no end was seen: the command may still run there';
  }
}

/** Exit code 1 when an instance did not take the bundle. */
export async function updateCommand(options: ExecOptions, output: Output): Promise<ExitCode> {
  if (options.words.length > 0) throw new AppError('usage', 'exec --update takes no command');
  return onRun(options, output, async ({ run, stores, runner, config, signal }) => {
    const { aws, sandbox } = run.settings;
    const bundle = await bundleOfRun(run, { configFile: config.file, output, signal });
    if (sandbox && aws.endpoint)
      await allowBundle({ ...sandbox, endpoint: sandbox.endpoint ?? aws.endpoint }, bundle.sha256);
    using objects = openBucket(aws, run.dryRun);
    await putBundle(objects, bundle, aws);
    const say = (text: string): void => output.line(text);
    const { sha256 } = bundle;
    const { runs } = stores;
    const { run: row, fleet } = stores.of(run.id);
    const parts = { run, runs, row, fleet, runner, objects, clock: systemClock, sha256, say };
    const report = await updateFleet(parts, signal);
    output.line(renderUpdate(report));
    const stopped = report.left.length > 0 ? EXIT.interrupted : EXIT.complete;
    const exitCode = report.failed === null ? stopped : EXIT.internal;
    output.document({ ...report, exitCode });
    return exitCode;
  });
}

function renderUpdate({ run, bundle, updated, failed, left, launches }: UpdateReport): string {
  const later = launches ? 'Instances launched later get it too.' : 'Instances launched later get the old bundle.';
  const others = left.filter(({ slot, epoch }) => slot !== failed?.slot || epoch !== failed.epoch);
  return [
    ...(failed ? [`! slot ${failed.slot}: ${failed.instanceId}: ${failed.reason}`] : []),
    `${updated.length} instances were brought to bundle ${bundle.slice(0, 12)}. ${later}`,
    ...(others.length > 0 ? [`Still with another bundle: slots ${others.map(({ slot }) => slot).join(', ')}`] : []),
    ...(left.length > 0 ? [`Go on with: orchestrator exec ${run} --update`] : []),
  ].join('\n');
}

interface OnRun {
  run: RunRecord;
  stores: StoreReaders;
  runner: CommandRunner;
  config: Config;
  /** Aborts at the first Ctrl-C. */
  signal: AbortSignal;
}

function onRun(options: ExecOptions, output: Output, work: (on: OnRun) => Promise<ExitCode>): Promise<ExitCode> {
  return withDatabase(options, output, async (database, config) => {
    const stores = await storesOf(database);
    const run = await getRun(stores.runs, options.runId);
    assertTakesCommands(run);
    using runner = openCommandRunner(run);
    using interrupts = watchInterrupts();
    return await work({ run, stores, runner, config, signal: interrupts.leave });
  });
}
