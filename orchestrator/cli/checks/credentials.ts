/** Which keys the SDK finds here, and whether AWS accepts them. */
import { AppError } from '../../../shared/domain/errors.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { Check, Finding } from './check.ts';
import { failed, ok, warning } from './check.ts';
import { lacksRegion } from './lacks.ts';

export const credentials: Check = {
  id: 'credentials',
  title: 'credentials and account',
  kinds: ['aws'],
  lacks: lacksRegion,
  beforeLaunch: true,
  async run({ facts, environment, target, config }) {
    const profile = environment.AWS_PROFILE;
    try {
      const { account, arn } = await facts.identity();
      const by = profile === undefined ? '' : ` (profile ${profile})`;
      const { deadline, grace } = config.values.run;
      const ends = deadline === null ? null : keysEndEarly(environment, systemClock.now() + deadline + grace);
      return [ok(`account ${account}, ${arn}${by}, region ${target.region}`), ...(ends ? [ends] : [])];
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'aws-denied') throw error;
      return [failed(error.code, error.message, remedyFor(error.message, profile))];
    }
  },
};

/**
 * A warning when keys in the environment expire before the run ends. Only those: roles, sessions and files are
 * refreshed.
 * @param untilMs when a run that started now would have ended and cleaned up: deadline and grace
 */
export function keysEndEarly(
  environment: Readonly<Record<string, string | undefined>>,
  untilMs: number,
): Finding | null {
  if (environment.AWS_ACCESS_KEY_ID === undefined) return null;
  const endsMs = Date.parse(environment.AWS_CREDENTIAL_EXPIRATION ?? '');
  if (Number.isNaN(endsMs) || endsMs >= untilMs) return null;
  return warning(
    `the keys in the environment end at ${new Date(endsMs).toISOString()}, before deadline and grace of a run that began now (${new Date(untilMs).toISOString()})`,
    'A process cannot get new keys through its environment: use a profile or an instance role, or keys that last longer',
  );
}

/** @param message of the refused call, with the error code of AWS or the SDK in it */
export function remedyFor(message: string, profile: string | undefined): string {
  const whose = profile === undefined ? '' : ` --profile ${profile}`;
  const logIn = `aws sso login${whose} (IAM Identity Center) or aws login${whose} (console)`;
  const other = profile === undefined ? 'name a profile in AWS_PROFILE' : 'correct AWS_PROFILE';
  if (/RequestTimeTooSkewed|SignatureDoesNotMatch|RequestExpired/.test(message))
    return 'Check "clock of this machine" first; else check the secret key: aws sts get-caller-identity';
  if (/expired|TokenProvider|sso session/i.test(message))
    return `The session is over: ${logIn}, then run the command again; keys in AWS_SESSION_TOKEN and ~/.aws/credentials take precedence over a new session`;
  if (/CredentialsProvider|MissingAuthenticationToken/.test(message))
    return `There are no credentials here: ${logIn}, ${other}, or give this machine an instance role`;
  return `Check the credentials that the AWS SDK finds here (aws sts get-caller-identity): ${logIn}, or ${other}`;
}
