/** The account these keys belong to. STS GetCallerIdentity is the one call that needs no permission. */
import type { AwsOptions } from './sdk-clients.ts';
import { lazySts } from './sdk-clients.ts';
import { toAppError } from './aws-errors.ts';

export interface Identity {
  /** Twelve digits. */
  account: string;
  /** User or assumed role. */
  arn: string;
}

/**
 * Throws `aws-denied` without keys or with keys that AWS rejects, `aws-capability-missing` at an endpoint without STS.
 */
export async function whoAmI(options: AwsOptions): Promise<Identity> {
  const lazy = lazySts(options);
  try {
    const { sdk, client } = await lazy.get();
    const { Account, Arn } = await client.send(new sdk.GetCallerIdentityCommand({}));
    return { account: Account ?? 'unknown', arn: Arn ?? 'unknown' };
  } catch (error) {
    throw toAppError(error, 'GetCallerIdentity', options.endpoint);
  } finally {
    lazy.close();
  }
}
