/** The document of `run --json`, also kept in the run's row. */
import type { RunReport } from '../model/report.ts';
import type { RunRecord } from '../model/stores.ts';

/** How the note of finish.ts begins that says what to do about held rows. */
const HELD_NOTE = 'nothing was published: ';

/**
 * The run's stored report. A crash between the end of a held run and its report leaves one that still says `held`: how the
 * run ended is then taken from its row.
 */
export function reportOf(run: RunRecord): RunReport | null {
  const { report, phase, reason, exitCode, finishedAtMs } = run;
  if (report === null || report.state === phase) return report;
  return {
    ...report,
    state: phase,
    reason,
    exitCode: exitCode ?? report.exitCode,
    finishedAt: finishedAtMs === null ? null : new Date(finishedAtMs).toISOString(),
    onTime: phase !== 'held' && finishedAtMs !== null && finishedAtMs <= run.deadlineAtMs,
    notes: report.notes.filter((note) => !note.startsWith(HELD_NOTE)),
  };
}
