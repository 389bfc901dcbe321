/** What a new run crawls and how: its products and its plan, checked and shown before the user is asked. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { Planned } from '../prepare/make-plan.ts';
import { IGNORED_ROBOTS } from '../model/robots-pace.ts';
import type { RunRecord } from '../model/stores.ts';
import { renderPlan } from '../plan/render-plan.ts';
import { awaitSite } from '../prepare/await-site.ts';
import { robotsOf } from '../prepare/preflight.ts';
import type { RunSource } from '../prepare/run-source.ts';
import { allAtOnce, checkBeforeLaunch } from './before-launch.ts';
import type { StartContext } from './start-context.ts';

export interface PlannedStart extends Planned {
  /** The run whose failed products this run retries. */
  parentId: string | null;
}

/**
 * Plans a start; null when the source has nothing to do. Throws everything that blocks the run at once, and
 * `site-down`.
 */
export async function planStart(
  context: StartContext,
  source: RunSource,
  parent: RunRecord | null,
): Promise<PlannedStart | null> {
  const { config, target, environment, checked, database, dryRun, interrupts, output } = context;
  const chosen = await allAtOnce(() => source.choose(checked, parent), context, { database });
  if (chosen === null) return null;
  const { products: all, parentId } = chosen;
  const known = { database, products: all };
  // Of a discovery, only some paths are known.
  const ids = config.discovery === undefined ? all.ids : [];
  await allAtOnce(() => checked.checkResults(ids), context, known);
  const planned = async (robots: RobotsPolicy): Promise<PlannedStart> => {
    const { plan, products } = await allAtOnce(() => checked.plan(all, robots), context, known);
    output.line(renderPlan(plan, config.values.run.max_cost));
    output.line();
    const place = { config, target, environment, database, plan, products };
    for (const line of await checkBeforeLaunch(place)) output.line(`! ${line}`);
    return { plan, products, parentId };
  };
  const seen = all.ids.length === 0 ? IGNORED_ROBOTS : await robotsOf(config);
  const first = await planned(seen);
  // Report all other problems before waiting for the site; its robots.txt may then change the plan.
  const waiting = { clock: systemClock, signal: interrupts.leave, say: (text: string) => output.line(text) };
  const robots = await awaitSite(seen, config, dryRun, waiting);
  return robots === seen ? first : planned(robots);
}
