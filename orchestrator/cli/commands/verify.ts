/** `orchestrator verify`: the proof of a run, from the ledger, the manifests in the bucket and the result table. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import type { RunRecord } from '../../control/stores.ts';
import type { Verdict } from '../../control/verify.ts';
import { verifyRun } from '../../control/verify.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { isMigrated } from '../../db/migrate.ts';
import { readVerifyFacts } from '../../db/verify-queries.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { openBucket } from '../cloud-access.ts';
import { loadConfig } from '../config/load-config.ts';
import { findRun } from '../find-run.ts';
import type { Output } from '../output.ts';
import { isSandboxAlive, startSandbox, stopSandbox } from '../sandbox-process.ts';
import type { StatusOptions } from './status.ts';

export async function verifyCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options.configPath, options.environment);
  const database = await openDatabase(config.values.database.url);
  try {
    if (!(await isMigrated(database)))
      throw new AppError('run-unknown', 'there is no run in this database', {
        hint: 'Start one with: orchestrator run',
      });
    const { runs, fleet, results } = createStores(database);
    const run = await findRun(runs, options.runId, 'over yet', (r) => isRunEnd(r.phase));
    const [facts, instances, parts] = await Promise.all([
      readVerifyFacts(database, run.id),
      fleet.instances(run.id),
      results.parts(run.id),
    ]);
    const verdict = await withBucket(run, (objects) => verifyRun({ run, facts, instances, parts, objects }));
    output.line(renderVerdict(verdict));
    output.document(verdict);
    return verdict.holds ? EXIT.complete : EXIT.held;
  } finally {
    await database.close();
  }
}

/** The bucket of the run. That of a dry run is a folder: a sandbox is started on it for as long as it is read. */
async function withBucket<T>(run: RunRecord, work: (objects: ReturnType<typeof openBucket>) => Promise<T>): Promise<T> {
  const { aws, sandbox } = run.settings;
  const gone =
    sandbox !== null && aws.endpoint !== null && !(await isSandboxAlive({ ...sandbox, endpoint: aws.endpoint }));
  const standIn = gone
    ? await startSandbox({ dataDir: sandbox.dataDir, port: 0, bundles: [], endsAtMs: Date.now() + 600_000 })
    : null;
  const objects = openBucket(standIn ? { ...aws, endpoint: standIn.endpoint } : aws, run.dryRun);
  try {
    return await work(objects);
  } finally {
    objects.close();
    if (standIn) await stopSandbox(standIn);
  }
}

function renderVerdict(verdict: Verdict): string {
  const { products } = verdict;
  const lines = [
    `Run ${verdict.run}: ${verdict.holds ? 'holds' : 'DOES NOT HOLD'}`,
    `  ${products.planned} planned = ${products.stored} stored + ${products.gone} gone + ${products.failed} failed${products.open > 0 ? ` + ${products.open} open` : ''}`,
    `  ${verdict.resultRows} rows in the result table, ${verdict.parts} parts and ${verdict.manifests} manifests in the bucket`,
    ...verdict.differences.flatMap((d) => [
      `  ! ${d.check}: expected ${d.expected}, found ${d.found}`,
      ...d.examples.map((e) => `      ${e}`),
    ]),
    ...verdict.notes.map((n) => `  note: ${n}`),
  ];
  return lines.join('\n');
}
