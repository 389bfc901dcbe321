/** The account these keys belong to. STS GetCallerIdentity is the one call that needs no permission. */
import { type AwsOptions, callOnce, lazySts } from './sdk-clients.ts';

export interface Identity {
  /** Twelve digits. */
  account: string;
  /** User or assumed role. */
  arn: string;
}

/**
 * Throws `aws-denied` without keys or with keys that AWS rejects, `aws-capability-missing` at an endpoint without STS.
 */
export function whoAmI(options: AwsOptions): Promise<Identity> {
  return callOnce(lazySts, options, 'GetCallerIdentity', async (sts) => {
    const { Account, Arn } = await sts.getCallerIdentity();
    return { account: Account ?? 'unknown', arn: Arn ?? 'unknown' };
  });
}
