/** `orchestrator doctor`: checks everything that a run depends on, without launching anything. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { type CheckResult, exitCodeOf } from '../../core/checks/run-checks.ts';
import type { Output } from '../../cli/output.ts';
import { examine, type ExamineOptions } from '../../core/run/before-launch.ts';

/** 0 when a run could start, warnings or not; else the code of the failure with the highest precedence. */
export async function doctorCommand(options: ExamineOptions, output: Output): Promise<ExitCode> {
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
