/** Removes from a report the instances that were lost only because the machine was too slow to boot them. */
import type { RunReport } from '../../orchestrator/core/model/report.ts';

/** An instance given up before its hello without any error: on an overloaded machine that is no fault of the run. */
const SLOW_BOOT = /^slot (\d+) epoch (\d+) \(.*?\) was given up: no-hello/;
/** Console lines of a program that started, ended on its own or could not be started. */
const NOT_SLOW = /listening|the program ended|boot: failed|nothing carried out|nothing was installed|fault /;

/** The instances in the report that were too slow to boot, as `slot.epoch`. */
function slowBoots({ notes = [] }: Partial<RunReport>): Set<string> {
  const found = notes.filter((note) => !NOT_SLOW.test(note)).map((note) => SLOW_BOOT.exec(note));
  return new Set(found.flatMap((match) => (match ? [`${match[1]}.${match[2]}`] : [])));
}

/** Number of instances replaced because they were too slow to boot. */
export const countSlowBoots = (report: RunReport): number => slowBoots(report).size;

/**
 * The report as if those instances had never been launched; also accepts the report of a refused run, which has none.
 */
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
