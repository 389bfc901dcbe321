/** Every check of doctor, from the configuration on. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { Config } from '../config/load-config.ts';
import { loadConfig } from '../config/load-config.ts';
import { assumedTarget } from '../plan/target.ts';
import type { StartOptions } from '../run/start-run.ts';
import { ALL_CHECKS } from './all-checks.ts';
import { openContext } from './before-launch.ts';
import type { Check } from './check.ts';
import type { CheckResult } from './run-checks.ts';
import { findingOf, runChecks } from './run-checks.ts';

export interface ExamineOptions extends Pick<StartOptions, 'configPath' | 'flags' | 'dryRun' | 'environment'> {
  /** For tests. Omitted: all of them. */
  checks?: readonly Check[];
}

/** A configuration that cannot be read is the only finding then. */
export async function examine(options: ExamineOptions): Promise<CheckResult[]> {
  const configuration = { id: 'configuration', title: 'configuration' };
  let config: Config;
  try {
    config = loadConfig(options.configPath, options.environment, options.flags);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return [{ check: configuration, findings: [findingOf(error)] }];
  }
  const { dryRun, environment, checks = ALL_CHECKS } = options;
  // If the settings are incomplete, the check of the settings reports what is missing.
  const target = assumedTarget(config, dryRun, environment);
  const context = openContext({ config, target, environment });
  try {
    const wanted = checks.filter((check) => check.kinds.includes(dryRun ? 'dry' : 'aws'));
    const read: CheckResult = { check: configuration, findings: [{ level: 'ok', text: config.file }] };
    return [read, ...(await runChecks(wanted, context, { clock: systemClock }))];
  } finally {
    await context.facts.close();
  }
}
