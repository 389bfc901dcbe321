/** How a simulated run ends, by the rules of the real one. */
import type { RunEnd } from '../control/results/exit-code.ts';
import { endOf } from '../control/results/exit-code.ts';
import { endedSiteDown, uncrawledReason } from '../control/decide/uncrawled-reason.ts';
import type { SimState } from './state.ts';

export function endOfRun({ world, work, unfinished, ordered, nowMs }: SimState): RunEnd {
  const { run } = world;
  const rest = uncrawledReason(run);
  const nothingGiven = ordered.length > 0 && ordered.every((r) => r.instanceId === null);
  return endOf({
    planned: run.planned,
    stored: work.totals.stored,
    gone: work.totals.gone,
    failed: work.totals.failed,
    reasons: unfinished > 0 ? { [rest]: unfinished } : {},
    request: run.request,
    uncrawledReason: rest,
    onTime: nowMs <= run.deadlineAtMs,
    maxFailed: run.settings.run.maxFailed,
    siteDown: endedSiteDown(run),
    noInstances: nothingGiven ? { cause: 'capacity', reason: 'EC2 gave no instance' } : null,
  });
}
