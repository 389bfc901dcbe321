/** A report without the boots that only the machine was too slow for. */
import type { RunReport } from '../../orchestrator/control/model/report.ts';

/** Given up before it came up, and nothing had gone wrong with it: on a machine that is far too busy that is no fault of the run. */
const SLOW_BOOT = /^slot (\d+) epoch (\d+) \(.*?\) was given up: no-hello/;
/** What the console says of a program that came up, ended by itself or could not be started. */
const NOT_SLOW = /listening|the program ended|boot: failed|nothing carried out|nothing was installed|fault /;

/** What it says of an instance that was too slow to begin, as `slot.epoch`. */
function slowBoots({ notes = [] }: Partial<RunReport>): Set<string> {
  const found = notes.filter((note) => !NOT_SLOW.test(note)).map((note) => SLOW_BOOT.exec(note));
  return new Set(found.flatMap((match) => (match ? [`${match[1]}.${match[2]}`] : [])));
}

/** How many instances were replaced because they were too slow to begin. */
export const countSlowBoots = (report: RunReport): number => slowBoots(report).size;

/** The report as if those instances had never been launched; also of a run that was refused, which has none. */
export function withoutSlowBoots(report: RunReport): RunReport {
  const slow = slowBoots(report);
  if (slow.size === 0) return report;
  const { launched, replaced, terminated, ...instances } = report.instances;
  return {
    ...report,
    instances: {
      ...instances,
      launched: launched - slow.size,
      replaced: Math.max(0, replaced - slow.size),
      terminated: terminated - slow.size,
    },
    shards: report.shards.filter(({ slot, epoch }) => !slow.has(`${slot}.${epoch}`)),
  };
}
