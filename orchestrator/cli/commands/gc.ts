/** `orchestrator gc`: ends what dead main servers have left behind, and only that. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { GcReport } from '../../control/gc/gc.ts';
import { createStores } from '../../db/create-stores.ts';
import { migrate } from '../../db/migrate.ts';
import { collectGarbage, wordOf } from '../../app/run/collect-garbage.ts';
import type { ConfigPlace } from '../../app/config/load-config.ts';
import { withDatabase } from '../../app/run/find-run.ts';
import type { Output } from '../output.ts';
import { renderTable } from '../../app/text-table.ts';

export interface GcOptions extends ConfigPlace {
  dryRun: boolean;
}

/** Exit code 1 when something could not be ended, 4 when a wrong clock stopped gc from trying. */
export async function gcCommand(options: GcOptions, output: Output): Promise<ExitCode> {
  const { dryRun, environment } = options;
  return withDatabase(options, async (database, config) => {
    await migrate(database);
    const { runs } = createStores(database);
    const report = await collectGarbage({ config, environment, database, runs, dryRun, cloud: true });
    output.line(report.cloud === null ? NO_REGION : renderCloud(report.cloud));
    const verb = dryRun ? 'would be dropped' : 'dropped';
    if (report.staging.length > 0) output.line(`\nStaging tables ${verb}: ${report.staging.join(', ')}`);
    output.document({ ...report.cloud, staging: report.staging });
    if (report.cloud?.items.some((i) => i.action === 'failed')) return EXIT.internal;
    return report.cloud?.refused && report.cloud.items.length > 0 ? EXIT.config : EXIT.complete;
  });
}

const NO_REGION = 'Neither aws.region nor aws.endpoint is set: there is no cloud to check.';

function renderCloud(report: GcReport): string {
  const { items, owner, refused, dryRun } = report;
  if (items.length === 0) return `Nothing at AWS carries the tag crawlfleet:owner=${owner}.`;
  const table = renderTable(
    ['kind', 'id', 'run', 'state', 'its time', dryRun ? 'would be' : 'now'],
    items.map((i) => [
      i.kind,
      i.id,
      i.run,
      i.state,
      i.expiresAt?.slice(0, 19) ?? null,
      i.detail === null ? wordOf(i.action) : `${wordOf(i.action)}: ${i.detail}`,
    ]),
  );
  return refused === null ? table : `${table}\n\n! nothing was marked or ended: ${refused}`;
}
