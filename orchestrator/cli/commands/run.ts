/** `orchestrator run`: check, plan, ask; then launch, crawl, publish, report. */
import { systemRandom } from '../../../shared/adapters/random.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { noMarks } from '../../control/core.ts';
import { buildReport } from '../../control/finish.ts';
import { newRunId, newRunKeys } from '../../control/start-run.ts';
import { createResultTable } from '../../db/result-table.ts';
import type { Plan } from '../../plan/plan.ts';
import { renderPlan } from '../../plan/render-plan.ts';
import { publishReport } from '../carry-out.ts';
import type { FlagValue } from '../config/load-config.ts';
import { loadConfig } from '../config/load-config.ts';
import { confirmRun } from '../confirm.ts';
import { watchInterrupts } from '../interrupts.ts';
import type { LaunchRunOptions } from '../launch-run.ts';
import { launchRun, newRun } from '../launch-run.ts';
import type { Output } from '../output.ts';
import { preflight } from '../preflight.ts';
import type { ProductList } from '../prepare.ts';
import { chooseTarget, refuseInfeasible, settingsOf } from '../prepare.ts';
import { takeLock } from '../run-lock.ts';
import type { Stores } from '../run-session.ts';
import { VERSION } from '../version.ts';

export interface RunOptions {
  configPath: string;
  flags: FlagValue[];
  dryRun: boolean;
  yes: boolean;
  environment: Readonly<Record<string, string | undefined>>;
}

export async function runCommand(options: RunOptions, output: Output): Promise<ExitCode> {
  const config = loadConfig(options.configPath, options.environment, options.flags);
  const target = chooseTarget(config, options.dryRun, options.environment);
  const interrupts = watchInterrupts();
  const checked = await preflight(config, target, { migrate: true });
  try {
    const lock = await takeLock(checked.stores.runs, systemClock);
    try {
      await warnOfUnfinished(checked.stores, output);
      const products = await checked.readProducts();
      const plan = checked.plan(products);
      output.line(renderPlan(plan, config.values.run.max_cost));
      output.line();
      refuseInfeasible(plan);
      const shared = {
        ...checked,
        config,
        target,
        lock,
        interrupts,
        output,
        plan,
        products,
        runId: newRunId(systemClock.now(), systemRandom),
      };
      if (products.ids.length === 0) return await runNothing(shared);
      if (!(await confirmRun({ ...options, json: output.json, signal: interrupts.leave }))) {
        output.line('Nothing was launched.');
        return EXIT.interrupted;
      }
      return await launchRun(shared);
    } finally {
      await lock.release();
    }
  } finally {
    await checked.database.close();
    interrupts.dispose();
  }
}

async function warnOfUnfinished(stores: Stores, output: Output): Promise<void> {
  for (const run of await stores.runs.list(5)) {
    if (!isRunEnd(run.phase))
      output.line(`! run ${run.id} was never finished (${run.phase}); take it up with: orchestrator resume ${run.id}`);
  }
}

/** A run of no products is complete at once; nothing is launched for it. */
async function runNothing(options: LaunchRunOptions & { plan: Plan; products: ProductList }): Promise<ExitCode> {
  const { config, target, stores, lock, runId, output } = options;
  const settings = {
    ...settingsOf(config, target, options.plan, VERSION),
    sandbox: null,
    server: { callbackUrl: '', callbackListen: '' },
  };
  await createResultTable(options.database, settings.results.table, settings.mapping);
  await stores.runs.create(newRun(options, newRunKeys(), settings), [], lock.fence, systemClock.now());
  await stores.runs.move(runId, 'planned', 'completed', lock.fence, systemClock.now(), {
    exitCode: EXIT.complete,
    reason: 'no products',
  });
  const report = await buildReport({ ...stores, clock: systemClock, marks: noMarks() }, runId);
  await stores.runs.setReport(runId, report, lock.fence);
  output.line('The query yields no products: nothing to crawl, nothing was launched.');
  publishReport(report, (await stores.runs.get(runId))!, config, output);
  return EXIT.complete;
}
