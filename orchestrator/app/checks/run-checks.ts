/** Runs checks concurrently, each within its own time limit, and never throws: every error becomes a finding. */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { type Check, type CheckContext, failed, type Finding, warning } from './check.ts';

export interface CheckResult {
  check: Pick<Check, 'id' | 'title'>;
  findings: Finding[];
  /** The check was not made, because one that it needs failed or was skipped. */
  isSkipped?: boolean;
}

/** Most checks make one call over the network. */
const LIMIT_MS = 10_000;
/** Upper bound whatever a check's own limit: a person waits for all of them together. */
const LONGEST_MS = 25_000;
/** Pause before retrying a call that AWS could not answer. */
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

/** In the order of `checks`; independent ones run at once. One without an answer has failed: a run might, too. */
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
  return tellOnce(await Promise.all(checks.map(start)));
}

const isFailed = ({ findings }: CheckResult): boolean => findings.some((f) => f.level === 'failed');

const becauseOf = ({ check }: CheckResult): string => `not checked, because of "${check.title}"`;

/** A fact that cannot be found out fails every check that needs it, with the same error. */
function tellOnce(results: readonly CheckResult[]): CheckResult[] {
  const told = new Map<AppError, CheckResult>();
  return results.map(({ check, findings, isSkipped }) => {
    const result: CheckResult = { check, findings, ...(isSkipped ? { isSkipped } : {}) };
    const error = findings.length === 1 && findings[0]?.level === 'failed' ? findings[0].error : undefined;
    const first = error && told.get(error);
    if (first) return { check, findings: [warning(becauseOf(first))], isSkipped: true };
    if (error) told.set(error, result);
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

function lateFinding({ kinds, isSlow }: Check, limitMs: number): Finding {
  const text = `no answer within ${Math.round(limitMs / 1_000)} s`;
  const remedy = 'Run the command again; if this persists, check the network between this machine and the service.';
  if (isSlow === true) return warning(text, remedy);
  return kinds.includes('dry') ? failed('database-busy', text, remedy) : failed('aws-unanswered', text, LATER);
}

/** A service that the endpoint lacks is a warning; every other error would stop the run. */
export function findingOf(error: unknown): Finding {
  if (!(error instanceof AppError)) return failed('internal', describeError(error));
  if (error.code === 'aws-capability-missing')
    return warning(`this endpoint has no such call: ${error.message}`, error.hint);
  return { level: 'failed', code: error.code, text: error.message, remedy: error.hint, error };
}
