/**
 * The role of instances: who signs with its credentials, and what its policy (deploy/policies/instance.json) allows
 * them.
 */
import { AwsError } from './aws-error.ts';
import { ACCOUNT_ID } from './ids.ts';

const ROLE_ID = 'AROASANDBOX0000000001';
const ROLE_NAME = 'instance';

/** The access key of an instance names it: no list of keys is kept. */
export const accessKeyOf = (instanceId: string): string => `ASIA${instanceId.slice(-16).toUpperCase()}`;

/**
 * The instance whose credentials sign a call; null for any other caller. @param credential Authorization or
 * X-Amz-Credential
 */
export function signingInstance(credential = ''): string | null {
  const digits = /(?:^|Credential=)ASIA([0-9A-F]{16})\//.exec(credential)?.[1];
  return digits === undefined ? null : `i-0${digits.toLowerCase()}`;
}

const sessionArn = (instanceId: string): string => `arn:aws:sts::${ACCOUNT_ID}:assumed-role/${ROLE_NAME}/${instanceId}`;

/** Its `aws:userid`. */
const userIdOf = (instanceId: string): string => `${ROLE_ID}:${instanceId}`;

/** The answer of GetCallerIdentity. Every other caller is the account itself: keys are not checked. */
export const identityOf = (instanceId: string | null) =>
  instanceId === null
    ? { Arn: `arn:aws:iam::${ACCOUNT_ID}:root`, UserId: ACCOUNT_ID, Account: ACCOUNT_ID }
    : { Arn: sessionArn(instanceId), UserId: userIdOf(instanceId), Account: ACCOUNT_ID };

/** The policies of an instance's role: as it is now, and as it was before it bound an instance to its own folder. */
export const INSTANCE_ROLES = ['own-folder', 'all-runs'] as const;
export type InstanceRole = (typeof INSTANCE_ROLES)[number];

interface ObjectCall {
  action: string;
  bucket: string;
  key: string;
  /** `If-None-Match` was sent. */
  onlyIfAbsent: boolean;
}

/** Throws S3's refusal of what the policy does not allow this instance. */
export function demandInstanceRole(
  instanceId: string,
  { action, bucket, key, onlyIfAbsent }: ObjectCall,
  role: InstanceRole,
): void {
  const [runs, run, slot, epoch, ...rest] = key.split('/');
  const isOfRun = runs === 'runs' && run !== undefined;
  const isOwn =
    isOfRun && slot !== undefined && epoch !== undefined && rest.slice(0, -1).includes(userIdOf(instanceId));
  if (action === 'PutObject' && onlyIfAbsent && (role === 'own-folder' ? isOwn : isOfRun)) return;
  throw new AwsError(
    'AccessDenied',
    `User: ${sessionArn(instanceId)} is not authorized to perform: s3:${action} on resource: "arn:aws:s3:::${bucket}/${key}" because no identity-based policy allows the s3:${action} action`,
    403,
  );
}
