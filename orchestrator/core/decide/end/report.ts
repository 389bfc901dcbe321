/** The stored report of a run, and its notes about bans and ambiguous numbers. */
import { MIN_SHOWN, MIN_SHOWN_SHARE, onlyShown } from '../../../../shared/domain/ambiguous-number.ts';
import type { RunReport, BanReport, NumberReport } from '../../model/report.ts';
import type { RunRecord, IncidentRecord } from '../../model/stores.ts';
import { epochKey } from '../../../../shared/domain/epoch-id.ts';
import { ALL_GONE, banRemedy } from '../ban-policy.ts';

/** How the note of finish.ts begins that says what to do about held rows. */
const HELD_NOTE = 'nothing was published: ';

/**
 * The run's stored report. A crash between the end of a held run and its report leaves one that still says `held`: how
 * the run ended is then taken from its row.
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

export function bansOf(incidents: readonly IncidentRecord[]): BanReport[] {
  return incidents
    .filter((t) => t.verdict === 'banned' && t.rule !== ALL_GONE)
    .map(({ slot, epoch, address, rule, atMs, untilMs, overAtMs, evidence }) => {
      return { slot, epoch, address, rule, atMs, untilMs, overAtMs, evidence };
    });
}

/** One line for all bans together: each has an alarm of its own. */
export function banNotes(bans: readonly BanReport[], { site }: Pick<RunRecord['settings'], 'site'>): string[] {
  if (bans.length === 0) return [];
  const addresses = new Set(bans.map((b) => b.address ?? epochKey(b))).size;
  const rules = [...new Set(bans.map((b) => b.rule))].join(', ');
  const back = bans.filter((b) => b.overAtMs !== null).length;
  return [
    `the site banned ${addresses} ${addresses === 1 ? 'address' : 'addresses'} (${rules}), ${back} of ${bans.length} bans ended in time: ` +
      'the evidence is under `bans` in report.json, the meaning of each rule in docs/bans.md; ' +
      banRemedy(bans, site),
  ];
}

/** One line for each field with values that were left empty. */
export function numberNotes(numbers: readonly NumberReport[]): string[] {
  return numbers
    .filter(({ empty }) => empty > 0)
    .map(
      ({ field, empty, example, ...column }) =>
        `field ${field}: ${empty} values were left empty, because nothing decides which number ${JSON.stringify(example)} is${why(column)}. ` +
        'Where the site has one decimal mark, name it in the mapping: number: { decimal: "," }, or price: { currency, decimal }',
    );
}

function why({ mark, shown }: Pick<NumberReport, 'mark' | 'shown'>): string {
  if (mark !== null) return `, though "${mark}" is the decimal mark of the column`;
  if (shown['.'] + shown[','] === 0) return ' (no other value of the column shows its decimal mark)';
  const only = onlyShown(shown);
  if (only !== null)
    return ` (only ${shown[only]} of the other products show "${only}"; ${MIN_SHOWN} and ${MIN_SHOWN_SHARE * 100} % are required)`;
  return ` (the column has both decimal marks: "." in ${shown['.']} products, "," in ${shown[',']})`;
}
