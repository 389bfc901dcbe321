/** Everything that blocks a launch as one error: every cause with its remedy, the most important exit code. */
import { AppError, ERROR_KINDS, type ErrorCode } from '../../../shared/domain/errors.ts';
import { EXIT, EXIT_FACTS, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import type { Finding } from './check.ts';
import type { CheckResult } from './run-checks.ts';

type Failure = Extract<Finding, { level: 'failed' }>;

/** The precedence of causes for the exit code (docs/exit-codes.md). */
const PRECEDENCE: ExitCode[] = (Object.keys(EXIT_FACTS) as (keyof typeof EXIT)[]).map((name) => EXIT[name]);

const rankOf = (code: ErrorCode): number => PRECEDENCE.indexOf(ERROR_KINDS[code].exit);

const failuresOf = (results: readonly CheckResult[]): Failure[] =>
  results.flatMap(({ check, findings }) =>
    findings
      .filter((f): f is Failure => f.level === 'failed')
      // These failures have texts that do not name their subject, and a refusal has no titles.
      .map((f) => (NAMELESS.has(f.code) ? { ...f, text: `${check.title}: ${f.text}` } : f)),
  );

const NAMELESS = new Set<ErrorCode>(['aws-unanswered', 'database-busy']);

/** The exit code that the command would end with for these results; 0 when nothing failed. */
export function exitCodeOf(results: readonly CheckResult[]): ExitCode {
  const [first] = failuresOf(results).toSorted((a, b) => rankOf(a.code) - rankOf(b.code));
  return first === undefined ? EXIT.complete : ERROR_KINDS[first.code].exit;
}

/**
 * Null when nothing failed. A single failure is the error it came from. Several are listed one below the other, each
 * with its remedy, and the code is that of the one with the highest precedence.
 * @param thrown an error from elsewhere, to be reported with them
 */
export function refusalOf(results: readonly CheckResult[], thrown: AppError | null = null): AppError | null {
  const met: Failure[] =
    thrown === null
      ? []
      : [{ level: 'failed', code: thrown.code, text: thrown.message, remedy: thrown.hint, error: thrown }];
  // Two checks may report the same cause.
  const found = [...met, ...failuresOf(results)];
  const all = found.filter(({ text }, i) => found.findIndex((other) => other.text === text) === i);
  const [first] = all.toSorted((a, b) => rankOf(a.code) - rankOf(b.code));
  if (first === undefined) return null;
  if (all.length === 1) return first.error ?? new AppError(first.code, first.text, hintOf(first));
  const lines = all.map(({ text, remedy }) =>
    remedy === undefined ? `  - ${text}` : `  - ${text}\n      ${remedy.replaceAll('\n', '\n      ')}`,
  );
  return new AppError(first.code, `nothing was launched, for ${all.length} reasons:\n${lines.join('\n')}`, {
    hint: 'orchestrator doctor checks everything again and changes nothing.',
  });
}

const hintOf = ({ remedy }: Failure): { hint?: string } => (remedy === undefined ? {} : { hint: remedy });
