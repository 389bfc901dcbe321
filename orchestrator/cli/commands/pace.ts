/** `orchestrator pace`: a run that keeps away from a site for a while, or crawls it slower than configured. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { parseDuration } from '../../../shared/domain/quantity.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { operatorPace, operatorPaceInWords, resetPace } from '../../core/decide/operator-pace.ts';
import { findRun, storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import { holderAtWork } from '../../core/lookup/run-lock.ts';
import { FleetSnapshot } from '../../core/model/fleet-snapshot.ts';
import { operatorPaceOf } from '../../core/model/operator-pace.ts';
import type { RunRecord } from '../../core/model/stores.ts';
import type { Output } from '../output.ts';
import type { StatusOptions } from './status.ts';

type PaceOptions = StatusOptions & { interval?: string; pause?: string; nextPlan?: boolean; reset?: boolean };

/**
 * Stores what the operator asks for: a living main server sees it within seconds, another one when it resumes the run.
 */
export async function paceCommand(options: PaceOptions, output: Output): Promise<ExitCode> {
  const { interval, pause, nextPlan = false, reset = false } = options;
  if (!(reset || nextPlan || interval !== undefined || pause !== undefined))
    throw new AppError('usage', 'pace needs --interval, --pause, --next-plan or --reset', {
      hint: 'For example: orchestrator pace --interval 20s, or --pause 30m',
    });
  return withDatabase(options, output, async (database, config) => {
    const stores = await storesOf(database);
    const run = await findRun(stores.runs, { runId: options.runId, config }, 'unfinished', (r) => !isRunEnd(r.phase));
    if (nextPlan && run.settings.site.maxRequests !== undefined)
      throw new AppError('usage', `run ${run.id} is a series of a probe, which leaves nothing to the next plan`);
    if (!reset && isRunEnd(run.phase)) throw hasEnded(run);
    const nowMs = systemClock.now();
    const fleet = new FleetSnapshot(await stores.of(run.id).fleet.instances());
    const request = {
      ...(interval === undefined ? {} : { intervalMs: parseDuration(interval)! }),
      ...(pause === undefined ? {} : { pauseMs: parseDuration(pause)! }),
      isForNextPlan: nextPlan,
    };
    const asked = reset ? resetPace(run, nowMs) : operatorPace(run, fleet, request, nowMs);
    if (!(await stores.runs.setOperatorPace(run.id, asked))) throw hasEnded(run);
    const paced = { ...run, operatorPace: asked };
    const isOver = isRunEnd(run.phase);
    const mainServer = isOver ? null : ((await holderAtWork(stores.runs, run))?.owner ?? null);
    output.line(`Run ${run.id}: ${operatorPaceInWords(paced)}.`);
    output.line(
      isOver
        ? 'It has ended: the next plan keeps nothing of it.'
        : mainServer === null
          ? `! No main server is at work, so no instance hears of it: they keep the pace that they have until orchestrator resume ${run.id}, or end with orchestrator stop ${run.id}.`
          : 'Each instance keeps to it from its next heartbeat on.',
    );
    output.document({ run: run.id, pace: operatorPaceOf(paced), mainServer });
    return EXIT.complete;
  });
}

const hasEnded = ({ id, phase }: RunRecord): AppError =>
  new AppError('run-ended', `run ${id} has ended already: ${phase}`, {
    hint: 'Its pace can only be reset, which forgets what the next plan was to keep. What runs from now on take is site.interval.',
  });
