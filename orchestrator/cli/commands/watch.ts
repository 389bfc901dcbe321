/**
 * `orchestrator watch`: the progress of a run that another process works on, from the database. Ctrl-C ends only the
 * watcher.
 */
import type { RunReader, Stores } from '../../control/model/stores.ts';
import { FleetSnapshot } from '../../control/model/fleet-snapshot.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { findRun, storesOf, withDatabase } from '../../app/run/find-run.ts';
import { watchInterrupts } from '../interrupts.ts';
import type { Output } from '../output.ts';
import { createProgressPrinter, type ProgressFacts } from '../progress.ts';
import { lookAtHolder } from '../../app/run/run-lock.ts';
import type { StatusOptions } from './status.ts';

const QUIET_MS = 10_000;

export async function watchCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  const interrupts = watchInterrupts();
  return withDatabase(options, async (database) => {
    const progress = createProgressPrinter(process.stderr, QUIET_MS);
    const stores = await storesOf(database);
    const { id } = await findRun(stores.runs, options.runId, 'unfinished', (r) => !isRunEnd(r.phase));
    const rows = stores.of(id);
    let alone = false;
    for (;;) {
      const facts = await readFacts(rows);
      const ended = isRunEnd(facts.run.phase);
      progress.show(facts);
      if (ended || interrupts.leave.aborted) {
        progress.end();
        const { phase, reason } = facts.run;
        output.line(`Run ${id}: ${phase}${reason === null ? '' : ` (${reason})`}`);
        output.document({ run: id, state: phase, reason, exitCode: facts.run.exitCode, report: facts.run.report });
        return EXIT.complete;
      }
      const nobody = !(await isWorkedOn(stores, id));
      if (nobody && !alone) {
        progress.end();
        output.line(`! no main server works on this run; take it up with: orchestrator resume ${id}`);
      }
      alone = nobody;
      await systemClock.sleep(
        Math.max(500, limitsFor(facts.run.deadlineAtMs - facts.run.startedAtMs).heartbeatMs / 5),
        interrupts.leave,
      );
    }
  }).finally(() => interrupts.dispose());
}

async function readFacts({ run, fleet, work }: RunReader): Promise<ProgressFacts> {
  const [row, instances, counts] = await Promise.all([run.get(), fleet.instances(), work.counts()]);
  return { nowMs: systemClock.now(), run: row!, fleet: new FleetSnapshot(instances), work: counts, robots: null };
}

async function isWorkedOn({ runs }: Stores, runId: string): Promise<boolean> {
  if (!runs.guard) return true;
  const { state, holder } = await lookAtHolder(runs.guard);
  return state === 'alive' && (holder?.runId ?? runId) === runId;
}
