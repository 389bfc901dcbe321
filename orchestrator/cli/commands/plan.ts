/** `orchestrator plan`: what a run would take, when it would end, and what it would cost. Changes nothing. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { renderPlan } from '../../plan/render-plan.ts';
import { loadConfig } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { refusalOfPlan } from '../../app/plan/make-plan.ts';
import { preflight } from '../../app/plan/preflight.ts';
import { chooseTarget } from '../../app/plan/target.ts';
import type { RunOptions } from './run.ts';

export async function planCommand(options: Omit<RunOptions, 'yes'>, output: Output): Promise<ExitCode> {
  const config = loadConfig(options.configPath, options.environment, options.flags);
  const target = chooseTarget(config, options.dryRun, options.environment);
  const checked = await preflight(config, target, { migrate: false });
  try {
    const products = await checked.readProducts(options.acceptDrop);
    await checked.checkResults(products.ids);
    const { plan } = await checked.plan(products);
    output.line(renderPlan(plan, config.values.run.max_cost));
    output.document(plan);
    return refusalOfPlan(plan)?.exitCode ?? EXIT.complete;
  } finally {
    await checked.database.close();
  }
}
