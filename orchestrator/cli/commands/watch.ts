/** `orchestrator watch`: progress of a run of another process, or of the next one. Ctrl-C ends only the watcher. */
import { storedRun } from '../../core/model/core.ts';
import type { RunReader, RunStore } from '../../core/model/stores.ts';
import { FleetSnapshot } from '../../core/model/fleet-snapshot.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { limitsFor } from '../../../shared/domain/limits.ts';
import { isRunEnd } from '../../../shared/domain/states.ts';
import { getRun, storesOf, unfinishedRuns, withDatabase } from '../../core/lookup/find-run.ts';
import { watchInterrupts } from '../interrupts.ts';
import type { Output } from '../output.ts';
import { createProgressPrinter, type ShownWorld } from '../progress.ts';
import { holderAtWork, lockNamesOfConfig } from '../../core/lookup/run-lock.ts';
import type { StatusOptions } from './status.ts';

const QUIET_MS = 10_000;

export async function watchCommand(options: StatusOptions, output: Output): Promise<ExitCode> {
  using interrupts = watchInterrupts();
  return await withDatabase(options, output, async (database, config) => {
    const progress = createProgressPrinter(process.stderr, QUIET_MS);
    const stores = await storesOf(database);
    const id = options.runId ?? (await nextRun(stores.runs, lockNamesOfConfig(config), interrupts.leave, output));
    if (id === null) return EXIT.complete;
    await getRun(stores.runs, id);
    const rows = stores.of(id);
    let wasAlone = false;
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
      const isAlone = (await holderAtWork(stores.runs, facts.run)) === null;
      if (isAlone && !wasAlone) {
        progress.end();
        output.line(`! no main server works on this run; take it up with: orchestrator resume ${id}`);
      }
      wasAlone = isAlone;
      await systemClock.sleep(
        Math.max(500, limitsFor(facts.run.deadlineAtMs - facts.run.startedAtMs).heartbeatMs / 5),
        interrupts.leave,
      );
    }
  });
}

const LOOK_MS = 1_000;

/**
 * The newest unfinished run that uses one of these names; without one the next that begins. Null once the user leaves.
 */
async function nextRun(
  runs: RunStore,
  names: readonly string[],
  leave: AbortSignal,
  output: Output,
): Promise<string | null> {
  for (let isFirst = true; !leave.aborted; isFirst = false) {
    const run = (await unfinishedRuns(runs, names)).find(({ phase }) => !isRunEnd(phase));
    if (run) return run.id;
    if (isFirst) output.line('No run is at work; waiting for the next one.');
    await systemClock.sleep(LOOK_MS, leave);
  }
  return null;
}

async function readFacts({ run, fleet, work }: RunReader): Promise<ShownWorld> {
  const [row, instances, counts] = await Promise.all([storedRun({ run }), fleet.instances(), work.counts()]);
  return { nowMs: systemClock.now(), run: row, fleet: new FleetSnapshot(instances), work: counts, robots: null };
}
