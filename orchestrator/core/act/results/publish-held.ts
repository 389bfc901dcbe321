/** Publishes the rows of a held run once a person has checked them. */
import { AppError } from '../../../../shared/domain/errors.ts';
import { endOf, productsOf } from '../../decide/end/exit-code.ts';
import { mayStoreNothing } from '../../decide/end/guard.ts';
import { failRefused } from './refused-rows.ts';
import { type FinishCore, leftAloneOf } from './finish.ts';
import { endedSiteDown, uncrawledReason } from '../../decide/uncrawled-reason.ts';
import type { RunRecord } from '../../model/stores.ts';

/** Maximum moves of a run: it enters each phase once, and there are fewer phases. */
const MAX_MOVES = 20;

/**
 * Publishes a held run in one transaction and drops its staging. Throws `run-not-held`, and `run-overtaken` when a run
 * that began later has published since, unless `overNewer`: then this crawl overwrites the newer rows.
 */
export async function publishHeld(core: FinishCore, run: RunRecord, overNewer: boolean): Promise<{ rows: number }> {
  if (run.phase !== 'held') {
    throw new AppError('run-not-held', `run ${run.id} is ${run.phase}, not held: there is nothing to publish`, {
      hint: 'Look at it with: orchestrator status ' + run.id,
    });
  }
  const [newer] = overNewer ? [] : await core.results.newerRuns();
  if (newer !== undefined) {
    throw new AppError('run-overtaken', `run ${newer} began after ${run.id} and has published its rows since`, {
      hint:
        `Discard the older rows with: orchestrator cancel ${run.id}. ` +
        `Or write them over the newer ones all the same: orchestrator publish ${run.id} --force`,
    });
  }
  const published = await publishWithout(core, run, overNewer);
  core.log.info({ rows: published.rows }, 'held rows are published');
  await core.results.dropStaging();
  return published;
}

/** A person wants these rows, so those that the result table refuses fail, however many they are. */
async function publishWithout(core: FinishCore, run: RunRecord, overNewer: boolean): Promise<{ rows: number }> {
  const noted = await noteOfEnd(core);
  for (;;) {
    const outcomes = await core.work.outcomes();
    const { exitCode, reason } = endOf({
      ...outcomes,
      request: run.request,
      uncrawledReason: uncrawledReason(noted),
      // Judged by the end of the crawl, however long the check took.
      onTime: (run.finishedAtMs ?? 0) <= run.deadlineAtMs,
      maxFailed: run.settings.run.maxFailed,
      leftAlone: await leftAloneOf(core.work, run),
      siteDown: endedSiteDown(noted),
      mayStoreNothing: mayStoreNothing(run, productsOf(outcomes)),
      noInstances: null,
    });
    const end = { exitCode, reason, held: true, overNewer };
    const published = await core.results.publish('completed', end);
    if ('rows' in published) return published;
    await failRefused(core, published.refused);
  }
}

/** The note from the end of crawling, from the event: the reason of `held` has replaced it in the run's row. */
async function noteOfEnd(core: FinishCore): Promise<{ reason: string | null }> {
  const moves = await core.run.events(MAX_MOVES, 'run');
  return { reason: moves.find((e) => e.to === 'releasing')?.detail ?? null };
}
