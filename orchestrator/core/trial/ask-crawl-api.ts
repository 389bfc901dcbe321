/** Reads one page with the code of instances, as a process: one JSON document in on stdin, one out on stdout. */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AppError, ERROR_KINDS, type ErrorCode } from '../../../shared/domain/errors.ts';
import { MAX_REDIRECTS } from '../../../shared/domain/same-site.ts';
import { type PageTrial, type TrialAnswer, trialAnswerSchema } from '../../../shared/wire/page-trial.ts';

export type PageReading = Exclude<TrialAnswer, { outcome: 'error' }>;

/** Time to start the program and a browser, in addition to the time limits of the requests. */
const START_MS = 60_000;
/** Enough for the rows of a large page with the trace of each field. */
const MAX_ANSWER_BYTES = 200_000_000;

/** Throws the AppError of the program, or `internal` when it ends without an answer. */
export async function askCrawlApi(trial: PageTrial): Promise<PageReading> {
  const { stdout, stderr } = await runProgram(
    JSON.stringify(trial),
    trial.site.timeoutMs * (MAX_REDIRECTS + 1) + START_MS + furtherMs(trial),
  );
  const parsed = trialAnswerSchema.safeParse(parseJson(stdout));
  if (!parsed.success)
    throw new AppError(
      'internal',
      `the page reader has given no answer: ${stderr.trim().slice(-2_000) || 'it ended without output'}`,
    );
  const answer = parsed.data;
  if (answer.outcome !== 'error') return answer;
  throw new AppError(
    answer.code in ERROR_KINDS ? (answer.code as ErrorCode) : 'internal',
    answer.message,
    answer.hint === null ? {} : { hint: answer.hint },
  );
}

/** Time for the further pages. */
function furtherMs({ further, site }: PageTrial): number {
  if (further === undefined) return 0;
  const intervalMs = Math.max(site.intervalMs, further.robots.crawlDelayMs ?? 0);
  return (further.pages - 1) * (MAX_REDIRECTS + 1) * (site.timeoutMs + intervalMs);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function runProgram(input: string, timeoutMs: number): Promise<{ stdout: string; stderr: string }> {
  // In the checkout this file and the program are TypeScript, in the installed package both are compiled.
  const here = fileURLToPath(import.meta.url);
  const program = path.resolve(path.dirname(here), '../../../crawl-api', `extract-page${path.extname(here)}`);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program], {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (stdout.length > MAX_ANSWER_BYTES) child.kill('SIGKILL');
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-10_000)));
    child.on('error', (cause) =>
      reject(new AppError('internal', `cannot start the page reader: ${cause.message}`, { cause })),
    );
    child.on('close', () => resolve({ stdout, stderr }));
    // It may end before it has read everything; its answer, or the lack of one, shows why.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}
