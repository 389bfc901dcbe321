/** What a check before a run is: one question about the world, whose answer is a few lines with what mends each. */
import type { AppError, ErrorCode } from '../../../shared/domain/errors.ts';
import type { AwsOptions } from '../../cloud/sdk-clients.ts';
import type { Config } from '../config/load-config.ts';
import type { Target } from '../target.ts';
import type { Facts } from './facts.ts';

export const LEVELS = ['ok', 'warning', 'failed'] as const;
export type Level = (typeof LEVELS)[number];

/**
 * ok       as a run needs it
 * warning  a run can start; what is said may cost time, money or results, or could not be looked at
 * failed   a run would be refused, or would go wrong
 */
export type Finding =
  | { level: 'ok'; text: string }
  /** `standing`: true whatever the configuration, so that a run does not repeat it each time. */
  | { level: 'warning'; text: string; remedy?: string | undefined; standing?: true }
  /** `code` says which exit code the cause has; `error` is the original where there is one. */
  | { level: 'failed'; text: string; remedy?: string | undefined; code: ErrorCode; error?: AppError };

/** Which runs a check is for: `aws` for those that are paid for, `dry` for dry runs. */
export type RunKind = 'aws' | 'dry';

export interface Check {
  id: string;
  /** What is looked at, in a few words. */
  title: string;
  kinds: readonly RunKind[];
  /** Checks whose failure makes this one pointless; it then says so instead of repeating them. */
  needs?: readonly string[];
  /** Checks of which any answer will do, a bad one too: only without one is this check left out. */
  after?: readonly string[];
  /** What the configuration does not say, so that there is nothing to look at; null when it can be made. */
  lacks?(context: CheckContext): string | null;
  /** True for those that `run` and `retry` make too, before anything is launched. */
  beforeLaunch?: boolean;
  /** True for what stops `run` and `retry` on their way anyway: made when something else has, so that all is told at once. */
  alongside?: boolean;
  /** Longest that it is waited for; default 10 s. */
  limitMs?: number;
  /** True where the answer may take long without anything being wrong, as with a large product list. */
  isSlow?: boolean;
  /** Whatever it throws is a failure with the error's message and hint. */
  run(context: CheckContext): Promise<Finding[]>;
}

export interface CheckContext {
  config: Config;
  target: Target;
  environment: Readonly<Record<string, string | undefined>>;
  /** How AWS, or what stands for it, is asked; null for a sandbox that a dry run will start for itself. */
  aws: AwsOptions | null;
  /** What has been found out already; each fact is asked for once. */
  facts: Facts;
}

export const ok = (text: string): Finding => ({ level: 'ok', text });
export const warning = (text: string, remedy?: string): Finding => ({ level: 'warning', text, remedy });
export const standing = (text: string, remedy?: string): Finding => ({
  level: 'warning',
  text,
  remedy,
  standing: true,
});
export const failed = (code: ErrorCode, text: string, remedy?: string): Finding => ({
  level: 'failed',
  code,
  text,
  remedy,
});
