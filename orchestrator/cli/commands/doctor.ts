/** `orchestrator doctor`: checks everything that a run depends on, without launching anything. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { ALL_CHECKS } from '../../app/checks/all-checks.ts';
import { openContext } from '../../app/checks/before-launch.ts';
import type { Check } from '../../app/checks/check.ts';
import { exitCodeOf } from '../../app/checks/refuse.ts';
import type { CheckResult } from '../../app/checks/run-checks.ts';
import { findingOf, runChecks } from '../../app/checks/run-checks.ts';
import type { Config } from '../../app/config/load-config.ts';
import { loadConfig } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { assumedTarget } from '../../app/plan/target.ts';
import type { RunOptions } from './run.ts';

export interface DoctorOptions extends Omit<RunOptions, 'yes'> {
  /** For tests. Omitted: all of them. */
  checks?: readonly Check[];
}

/** 0 when a run could start, warnings or not; else the code of the failure with the highest precedence. */
export async function doctorCommand(options: DoctorOptions, output: Output): Promise<ExitCode> {
  const results = await examine(options);
  const skipped = results.filter((r) => r.isSkipped === true);
  for (const line of results.filter((r) => r.isSkipped !== true).flatMap(render)) output.line(line);
  if (skipped.length > 0) output.line(`${'skipped'.padEnd(INDENT.length)}${renderSkipped(skipped)}`);
  const exitCode = exitCodeOf(results);
  const count = (level: string): number => results.flatMap((r) => r.findings).filter((f) => f.level === level).length;
  output.line();
  output.line(
    `${count('ok')} ok, ${count('warning')} ${count('warning') === 1 ? 'warning' : 'warnings'}, ${count('failed')} failed: ` +
      (exitCode === 0 ? 'a run could start.' : 'a run would be refused.'),
  );
  output.document({
    ready: exitCode === 0,
    exitCode,
    checks: results.flatMap(({ check, findings }) =>
      findings.map((finding) => ({
        id: check.id,
        title: check.title,
        level: finding.level,
        text: finding.text,
        remedy: ('remedy' in finding ? finding.remedy : undefined) ?? null,
      })),
    ),
  });
  return exitCode;
}

async function examine(options: DoctorOptions): Promise<CheckResult[]> {
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

const INDENT = ' '.repeat(9);

/** One line: a list of skipped checks must not bury the fault that stopped them. */
function renderSkipped(skipped: readonly CheckResult[]): string {
  const byCause = Map.groupBy(skipped, ({ findings }) => findings[0]?.text ?? 'not checked');
  return [...byCause]
    .map(([why, results]) => `${results.map(({ check }) => check.title).join(', ')} (${why})`)
    .join(`\n${INDENT}`);
}

function render({ check, findings }: CheckResult): string[] {
  return findings.flatMap((finding) => {
    const [first = '', ...rest] = `${check.title}: ${finding.text}`.split('\n');
    const remedy = 'remedy' in finding && finding.remedy !== undefined ? finding.remedy.split('\n') : [];
    return [
      `${finding.level.padEnd(INDENT.length)}${first}`,
      ...rest.map((line) => INDENT + line),
      ...remedy.map((line, i) => `${INDENT}${i === 0 ? '-> ' : '   '}${line}`),
    ];
  });
}
