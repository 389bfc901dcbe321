/**
 * Runs checks at once, each within its time limit; every error becomes a finding. What blocks a launch is one error.
 */
import { AppError, ERROR_KINDS, type ErrorCode } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { type Check, type CheckContext, failed, type Finding, findingOf, warning } from './check.ts';
import { EXIT, EXIT_MEANINGS, type ExitCode } from '../../../shared/domain/exit-codes.ts';

export interface CheckResult {
  check: Pick<Check, 'id' | 'title'>;
  findings: Finding[];
  /** The check was not made, because one that it needs failed or was skipped. */
  isSkipped?: boolean;
}

const LIMIT_MS = 10_000;
/** Upper bound whatever a check's own limit: a person waits for all of them together. */
const LONGEST_MS = 25_000;
const AGAIN_MS = 2_000;

export interface Running {
  clock: Clock;
  /** Factor on the time limit of every check. Default 1. */
  patience?: number;
}

interface Made {
  findings: Finding[];
  /** There was no answer, not even a failure. */
  isBroken: boolean;
}

/**
 * The results in the order of `checks`; independent ones run at once. One without an answer has failed: a run might,
 * too.
 */
export async function runChecks(
  checks: readonly Check[],
  context: CheckContext,
  { clock, patience = 1 }: Running,
): Promise<CheckResult[]> {
  const running = { clock, patience, startedMs: clock.monotonic() };
  const under = new Map<string, Promise<CheckResult & { isBroken: boolean }>>();
  const start = (check: Check): Promise<CheckResult & { isBroken: boolean }> => {
    const there = under.get(check.id);
    if (there) return there;
    const find = (ids: readonly string[] = []): Check[] => ids.flatMap((id) => checks.filter((c) => c.id === id));
    const made = (async () => {
      const about = { id: check.id, title: check.title };
      const skip = (why: string) => ({ check: about, findings: [warning(why)], isSkipped: true, isBroken: true });
      const lacking = check.lacks?.(context) ?? null;
      if (lacking !== null) return skip(`not checked: ${lacking}`);
      const [needed, earlier] = await Promise.all([
        Promise.all(find(check.needs).map(start)),
        Promise.all(find(check.after).map(start)),
      ]);
      const cause =
        needed.find((result) => isFailed(result) || result.isSkipped === true) ??
        earlier.find((result) => result.isBroken);
      if (cause) return skip(becauseOf(cause));
      return { check: about, ...(await runOne(check, context, running)) };
    })();
    under.set(check.id, made);
    return made;
  };
  return reportOnce(await Promise.all(checks.map(start)));
}

const isFailed = ({ findings }: CheckResult): boolean => findings.some((f) => f.level === 'failed');

const becauseOf = ({ check }: CheckResult): string => `not checked, because of "${check.title}"`;

/** A fact that cannot be found out fails every check that needs it, with the same error. */
function reportOnce(results: readonly CheckResult[]): CheckResult[] {
  const reported = new Map<AppError, CheckResult>();
  return results.map(({ check, findings, isSkipped }) => {
    const result: CheckResult = { check, findings, ...(isSkipped ? { isSkipped } : {}) };
    const error = findings.length === 1 && findings[0]?.level === 'failed' ? findings[0].error : undefined;
    const first = error && reported.get(error);
    if (first) return { check, findings: [warning(becauseOf(first))], isSkipped: true };
    if (error) reported.set(error, result);
    return result;
  });
}

async function runOne(
  check: Check,
  context: CheckContext,
  { clock, patience, startedMs }: Required<Running> & { startedMs: number },
): Promise<Made> {
  const leftMs = Math.max(1, startedMs + LONGEST_MS * patience - clock.monotonic());
  const limitMs = Math.min((check.limitMs ?? LIMIT_MS) * patience, leftMs);
  const over = new AbortController();
  let met: Made | null = null;
  const ask = async (): Promise<Made> => {
    const first = await attempt(check, context);
    if (!first.findings.some(isPassing)) return first;
    met = { ...first, findings: first.findings.map(unanswered) };
    await clock.sleep(AGAIN_MS, over.signal);
    const second = await attempt(check, context);
    return { ...second, findings: second.findings.map(unanswered) };
  };
  const timeout = clock
    .sleep(limitMs, over.signal)
    .then((): Made => met ?? { findings: [lateFinding(check, limitMs)], isBroken: true });
  try {
    return await Promise.race([ask(), timeout]);
  } finally {
    over.abort();
  }
}

async function attempt(check: Check, context: CheckContext): Promise<Made> {
  try {
    return { findings: [await check.run(context)].flat(), isBroken: false };
  } catch (error) {
    return { findings: [findingOf(error)], isBroken: true };
  }
}

/** AWS throttles, fails, or cannot be reached: in a few minutes the answer may differ. */
const isPassing = (finding: Finding): boolean =>
  finding.level === 'failed' && (finding.code === 'aws-throttled' || finding.code === 'aws-failed');

const LATER = 'AWS is slow, throttling or failing at the moment: run the command again in a few minutes';

/** Neither a fault of ours nor one of the settings. */
const unanswered = (finding: Finding): Finding =>
  isPassing(finding) ? failed('aws-unanswered', `could not be checked: ${finding.text}`, LATER) : finding;

function lateFinding({ only, isSlow }: Check, limitMs: number): Finding {
  const text = `no answer within ${Math.round(limitMs / 1_000)} s`;
  const remedy = 'Run the command again; if this persists, check the network between this machine and the service.';
  if (isSlow === true) return warning(text, remedy);
  return only === 'aws' ? failed('aws-unanswered', text, LATER) : failed('database-busy', text, remedy);
}

type Failure = Extract<Finding, { level: 'failed' }>;

/** The precedence of causes for the exit code (docs/exit-codes.md). */
const PRECEDENCE: ExitCode[] = (Object.keys(EXIT_MEANINGS) as (keyof typeof EXIT)[]).map((name) => EXIT[name]);

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
 * The error of the failed checks; null when nothing failed. A single failure is the error it came from. Several are
 * listed one below the other, each with its remedy, and the code is that of the one with the highest precedence.
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
