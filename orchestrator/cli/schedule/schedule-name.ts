import type { Config } from '../../app/config/load-config.ts';

/** Under which name the schedule keeps its record: two crawls into different tables are different schedules. */
export function scheduleName({ values }: Config): string {
  return values.schedule.name ?? values.results.table;
}
