/** The bucket of a run, even when the sandbox that provided it is gone. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import type { RunSettings } from '../model/run-settings.ts';
import type { RunRecord } from '../model/stores.ts';
import { openBucket } from './cloud-access.ts';
import type { Config, Environment } from '../config/load-config.ts';
import { chooseTarget, isLocal } from '../config/target.ts';
import { stateDirOf } from '../config/state-dir.ts';
import { type SandboxHandle, sandboxPid, startSandbox, stopSandbox } from './sandbox-process.ts';

const STAND_IN_MS = 10 * 60_000;

/** A dry run's bucket is a folder: starts a sandbox on it while it is read, unless its own is still up. */
export async function withRunBucket<T>(
  run: Pick<RunRecord, 'settings' | 'dryRun'>,
  work: (objects: ObjectStore) => Promise<T>,
): Promise<T> {
  const { aws, sandbox } = run.settings;
  const isOwn = sandbox !== null && sandbox.endpoint === undefined;
  const gone = isOwn && aws.endpoint !== null && (await sandboxPid({ ...sandbox, endpoint: aws.endpoint })) === null;
  return gone ? onFolder(sandbox.dataDir, aws, work) : inBucket(aws, run.dryRun, work);
}

/**
 * The bucket of a run that the database lacks: the folder of its dry run, that at an endpoint on this machine, which
 * dry runs use, else as configured.
 */
export async function withUnknownBucket<T>(
  config: Config,
  runId: string,
  environment: Environment,
  work: (objects: ObjectStore, folder: string | null) => Promise<T>,
): Promise<T> {
  const folder = stateDirOf(config.file).sandbox(runId);
  if (!existsSync(folder) && !isLocal(config.values.aws.endpoint)) {
    const hint = `For a dry run look at its name: \`orchestrator status\` lists the runs, and ${folder} is not there.`;
    const { region, bucket, endpoint } = chooseTarget(config, false, environment, hint);
    return inBucket({ region, bucket, endpoint }, false, (objects) => work(objects, null));
  }
  const { region, bucket, endpoint } = chooseTarget(config, true, environment);
  // A sandbox that only provided machines has no bucket in its folder, if it has one: the objects are in the configured
  // bucket.
  if (endpoint !== null && !existsSync(join(folder, 's3', bucket)))
    return inBucket({ region, bucket, endpoint }, true, (objects) => work(objects, null));
  return onFolder(folder, { region, bucket, endpoint }, (objects) => work(objects, folder));
}

type BucketName = Pick<RunSettings['aws'], 'region' | 'endpoint' | 'bucket'>;

async function onFolder<T>(dataDir: string, place: BucketName, work: (objects: ObjectStore) => Promise<T>): Promise<T> {
  const endsAtMs = systemClock.now() + STAND_IN_MS;
  const standIn: SandboxHandle = await startSandbox({ dataDir, port: 0, bundles: [], endsAtMs });
  try {
    return await inBucket({ ...place, endpoint: standIn.endpoint }, true, work);
  } finally {
    await stopSandbox(standIn);
  }
}

async function inBucket<T>(place: BucketName, dryRun: boolean, work: (objects: ObjectStore) => Promise<T>): Promise<T> {
  using objects = openBucket(place, dryRun);
  return await work(objects);
}
