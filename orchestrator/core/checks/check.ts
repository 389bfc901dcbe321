/** A check before a run: one question about the environment; the answer is a few lines, each with its remedy. */
import { AppError, describeError, type ErrorCode } from '../../../shared/domain/errors.ts';
import type { AwsOptions } from '../cloud/sdk-clients.ts';
import { regionOf, type RunInputs } from '../config/target.ts';
import type { Facts } from './facts.ts';

/**
 * ok       as a run needs it
 * warning  a run can start; the problem may cost time, money or results, or the check could not be made
 * failed   a run would be refused, or would go wrong
 */
export type Finding =
  | { level: 'ok'; text: string }
  /** `standing`: true for every configuration, so that runs do not repeat it each time. */
  | { level: 'warning'; text: string; remedy?: string | undefined; standing?: true }
  /** `code` determines the exit code; `error` is the original, if there is one. */
  | { level: 'failed'; text: string; remedy?: string | undefined; code: ErrorCode; error?: AppError };

export interface Check {
  id: string;
  title: string;
  /** Made for each of `aws.regions`, as if that were the only one. */
  regional?: true;
  /** Paid runs, or dry runs; omitted: both. */
  only?: 'aws' | 'dry';
  /** Checks whose failure makes this one pointless; it then names them instead of repeating their failures. */
  needs?: readonly string[];
  /** Checks that must answer first, even with a failure: this one is skipped only if they have no answer. */
  after?: readonly string[];
  /** The setting whose absence leaves nothing to check; null when the check can be made. */
  lacks?(context: CheckContext): string | null;
  /** True for checks that `run` and `retry` make too, before anything is launched. */
  beforeLaunch?: boolean;
  /** True for what would stop `run` and `retry` anyway: made after another failure, to report all at once. */
  alongside?: boolean;
  /** Time limit; default 10 s. */
  limitMs?: number;
  /** True when a slow answer is normal, as with a large product list. */
  isSlow?: boolean;
  /** Any error it throws becomes a failure with the error's message and hint. */
  run(context: CheckContext): Finding | Promise<Finding | Finding[]>;
}

export interface CheckContext extends RunInputs {
  /** How to call AWS, or what replaces it; null for a sandbox that a dry run will start itself. */
  aws: AwsOptions | null;
  facts: Facts;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const warning = (text: string, remedy?: string, standing?: true): Finding => ({
  level: 'warning',
  text,
  remedy,
  ...(standing && { standing }),
});
export const standing = (text: string, remedy?: string): Finding => warning(text, remedy, true);
export const failed = (code: ErrorCode, text: string, remedy?: string): Finding => ({
  level: 'failed',
  code,
  text,
  remedy,
});

/** A service that the endpoint lacks is a warning; every other error would stop the run. */
export function findingOf(error: unknown): Finding {
  if (!(error instanceof AppError)) return failed('internal', describeError(error));
  if (error.code === 'aws-capability-missing')
    return warning(`this endpoint has no such call: ${error.message}`, error.hint);
  return { level: 'failed', code: error.code, text: error.message, remedy: error.hint, error };
}

type Lacks = NonNullable<Check['lacks']>;

/** Names aws.region where it is not set: without a region the user's resources cannot be found. */
export const lacksRegion: Lacks = ({ config, target, environment }) =>
  target.dryRun || regionOf(config, environment) !== null ? null : 'aws.region is not set';

export const lacksBucket: Lacks = (context) =>
  lacksRegion(context) ?? (context.target.bucket === '' ? 'aws.bucket is not set' : null);

export const lacksServerUrl: Lacks = (context) =>
  lacksRegion(context) ?? (context.config.values.server.url === null ? 'server.url is not set' : null);
