/** `orchestrator verify`: the proof of a run, from the ledger, the manifests in the bucket and the result table. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { type Verdict, verifyRun } from '../../control/verify/verify.ts';
import { readVerifyFacts } from '../../db/verify-queries.ts';
import { plural } from '../../plan/wording.ts';
import { assertKept, findRun, storesOf, withDatabase } from '../../app/run/find-run.ts';
import type { Output } from '../output.ts';
import { withRunBucket } from '../../app/cloud/run-bucket.ts';
import type { StatusOptions } from './status.ts';

export async function verifyCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  return withDatabase(options, async (database) => {
    const stores = await storesOf(database);
    const run = await findRun(stores.runs, options.runId, 'over yet', (r) => isRunEnd(r.phase));
    assertKept(run);
    const [facts, instances, parts] = await Promise.all([
      readVerifyFacts(database, run.id),
      stores.of(run.id).fleet.instances(),
      stores.of(run.id).results.parts(),
    ]);
    const verdict = await withRunBucket(run, (objects) => verifyRun({ run, facts, instances, parts, objects }));
    output.line(renderVerdict(verdict));
    output.document(verdict);
    return verdict.holds ? EXIT.complete : EXIT.held;
  });
}

function renderVerdict(verdict: Verdict): string {
  const { products } = verdict;
  const lines = [
    `Run ${verdict.run}: ${verdict.holds ? 'holds' : 'DOES NOT HOLD'}`,
    `  ${products.planned} planned = ${products.stored} stored + ${products.gone} gone + ${products.failed} failed${products.open > 0 ? ` + ${products.open} open` : ''}`,
    `  ${plural(verdict.resultRows, 'row')} in the result table, ${plural(verdict.parts, 'part')} and ${plural(verdict.manifests, 'manifest')} in the bucket`,
    ...verdict.differences.flatMap((d) => [
      `  ! ${d.check}: expected ${d.expected}, found ${d.found}`,
      ...d.examples.map((e) => `      ${e}`),
    ]),
    ...verdict.notes.map((n) => `  note: ${n}`),
  ];
  return lines.join('\n');
}
