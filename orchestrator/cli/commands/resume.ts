/** `orchestrator resume`: takes up a run whose main server died or left. It is the loop started again. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { buildBundle } from '../../../userdata/bundle.ts';
import type { RunRecord } from '../../control/stores.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { migrate } from '../../db/migrate.ts';
import { carryOut } from '../carry-out.ts';
import type { CloudAccess } from '../cloud-access.ts';
import { openCloud } from '../cloud-access.ts';
import type { Config } from '../config/load-config.ts';
import { loadConfig } from '../config/load-config.ts';
import { findRun, isUnfinished } from '../find-run.ts';
import type { Interrupts } from '../interrupts.ts';
import { watchInterrupts } from '../interrupts.ts';
import { keepSandbox } from '../keep-sandbox.ts';
import { prepareLaunch } from '../launch-kit.ts';
import { quietMs } from '../launch-run.ts';
import type { Output } from '../output.ts';
import { createProgressPrinter } from '../progress.ts';
import type { RunLock } from '../run-lock.ts';
import { takeLock } from '../run-lock.ts';
import type { Stores } from '../run-session.ts';
import { openSession, stateDirOf } from '../run-session.ts';
import type { SandboxHandle, SandboxOptions } from '../sandbox-process.ts';
import { isSandboxAlive, startSandbox, stopSandbox } from '../sandbox-process.ts';

export interface ResumeOptions {
  configPath: string;
  runId: string | undefined;
  environment: Readonly<Record<string, string | undefined>>;
}

export async function resumeCommand(options: ResumeOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options.configPath, options.environment);
  const interrupts = watchInterrupts();
  const database = await openDatabase(config.values.database.url);
  try {
    await migrate(database);
    const stores = createStores(database);
    const run = await findRun(stores.runs, options.runId, 'unfinished', isUnfinished);
    if (!isUnfinished(run)) {
      throw new AppError('run-ended', `run ${run.id} has ended already: ${run.phase}`, {
        hint: `Look at it with: orchestrator status ${run.id}`,
      });
    }
    const lock = await takeLock(stores.runs, systemClock);
    try {
      lock.setRun(run.id);
      return await resumeRun({ run, stores, lock, config, interrupts, output });
    } finally {
      await lock.release();
    }
  } finally {
    await database.close();
    interrupts.dispose();
  }
}

interface Resumption {
  run: RunRecord;
  stores: Stores;
  lock: RunLock;
  config: Config;
  interrupts: Interrupts;
  output: Output;
}

async function resumeRun(resumption: Resumption): Promise<ExitCode> {
  const { run, output } = resumption;
  const options = { bundles: [(await buildBundle()).sha256], endsAtMs: endOfSandbox(run) };
  const sandbox = await findSandbox(run, options, output);
  const unwatch = sandbox && keepSandbox(sandbox, options, (text) => output.line(`! ${text}`));
  const cloud = openCloud(run.settings.aws, run.dryRun);
  let finished = false;
  try {
    const result = await takeUp(resumption, cloud);
    finished = result.finished;
    return result.exitCode;
  } finally {
    cloud.close();
    await unwatch?.();
    if (sandbox && finished) await stopSandbox(sandbox);
  }
}

async function takeUp({ run, stores, lock, config, interrupts, output }: Resumption, cloud: CloudAccess) {
  const progress = createProgressPrinter(process.stderr, quietMs(run.plan));
  const session = await openSession({
    runId: run.id,
    privateKey: run.privateKey,
    lock,
    stores,
    cloud,
    // The very port that the instances were told: they are calling it now.
    callbackListen: run.settings.server.callbackListen,
    launchKit: async () => prepareLaunch(cloud, run.settings.aws, run.plan.instanceType, await buildBundle()),
    logFile: `${stateDirOf(config.file).run(run.id)}/log.ndjson`,
    onAlarm: (text) => output.line(`! ${text}`),
    onWorld: (world) => progress.show(world),
  });
  try {
    output.line(`Run ${run.id} goes on from ${run.phase}.`);
    return await carryOut({ runId: run.id, session, stores, config, interrupts, progress, output });
  } finally {
    await session.close();
  }
}

/** The sandbox of a dry run: the one that is still up, or a new one on the same folder and port. */
async function findSandbox(
  run: RunRecord,
  options: Pick<SandboxOptions, 'bundles' | 'endsAtMs'>,
  output: Output,
): Promise<SandboxHandle | null> {
  const { sandbox, aws } = run.settings;
  if (sandbox === null || aws.endpoint === null) return null;
  const known: SandboxHandle = { ...sandbox, endpoint: aws.endpoint };
  if (await isSandboxAlive(known)) return known;
  output.line('The sandbox of this run is gone, and its instances with it; a new one takes its place.');
  const port = Number(new URL(aws.endpoint).port);
  return startSandbox({ ...options, dataDir: sandbox.dataDir, port, controlToken: sandbox.controlToken });
}

/** A minute after the last instance has powered itself off. */
function endOfSandbox(run: RunRecord): number {
  return Math.max(systemClock.now(), run.deadlineAtMs) + run.settings.run.graceMs + 60_000;
}
