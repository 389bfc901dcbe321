/** A service control policy of an organisation that denies the creation of anything without certain tags. */
import { AwsError } from './aws-error.ts';
import { ACCOUNT_ID } from './ids.ts';

interface Creation {
  service: 'ec2' | 'elasticloadbalancing';
  action: string;
  region: string;
  /** Tags by the type of each resource that the call creates. */
  created: Iterable<readonly [type: string, tags: ReadonlyMap<string, string> | undefined]>;
}

/** Throws AWS's refusal for the first resource that lacks one of the tags. */
export function demandTags(keys: readonly string[], { service, action, region, created }: Creation): void {
  for (const [type, tags] of created) {
    if (keys.every((key) => tags?.has(key))) continue;
    const denial =
      `User: arn:aws:iam::${ACCOUNT_ID}:root is not authorized to perform: ${service}:${action} on resource: ` +
      `arn:aws:${service}:${region}:${ACCOUNT_ID}:${type}/* with an explicit deny in a service control policy`;
    if (service === 'elasticloadbalancing') throw new AwsError('AccessDenied', denial, 403);
    throw new AwsError(
      'UnauthorizedOperation',
      `You are not authorized to perform this operation. ${denial}. Encoded authorization failure message: c2FuZGJveA`,
      403,
    );
  }
}
