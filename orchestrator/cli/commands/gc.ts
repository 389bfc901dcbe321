/** `orchestrator gc`: ends what dead main servers have left behind, and only that. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import type { GcReport } from '../../control/gc/gc.ts';
import { openDatabase } from '../../db/connect.ts';
import { createStores } from '../../db/create-stores.ts';
import { migrate } from '../../db/migrate.ts';
import { collectGarbage, wordOf } from '../../app/run/collect-garbage.ts';
import { loadConfig } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { renderTable } from '../../app/text-table.ts';

export interface GcOptions {
  configPath: string;
  dryRun: boolean;
  environment: Readonly<Record<string, string | undefined>>;
}

/** Exit code 1 when something could not be ended, 4 when a wrong clock stopped gc from trying. */
export async function gcCommand(options: GcOptions, output: Output): Promise<ExitCode> {
  const { dryRun, environment } = options;
  const config = loadConfig(options.configPath, environment);
  const database = await openDatabase(config.values.database.url);
  try {
    await migrate(database);
    const { runs } = createStores(database);
    const report = await collectGarbage({ config, environment, database, runs, dryRun, cloud: true });
    output.line(report.cloud === null ? NO_REGION : renderCloud(report.cloud));
    const verb = dryRun ? 'would be dropped' : 'dropped';
    if (report.staging.length > 0) output.line(`\nStaging tables ${verb}: ${report.staging.join(', ')}`);
    output.document({ ...report.cloud, staging: report.staging });
    if (report.cloud?.items.some((i) => i.action === 'failed')) return EXIT.internal;
    return report.cloud?.refused && report.cloud.items.length > 0 ? EXIT.config : EXIT.complete;
  } finally {
    await database.close();
  }
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
