/** Identifiers in AWS's formats. */
import { randomBytes } from 'node:crypto';

/** The account that owns everything. */
export const ACCOUNT_ID = '000000000000';

/** `i-0123456789abcdef0`: the prefix, then 17 hex digits. */
export function newResourceId(prefix: string): string {
  return `${prefix}-0${randomBytes(8).toString('hex')}`;
}

/** The 16 hex digits at the end of a load balancer's or target group's ARN. */
export function newArnId(): string {
  return randomBytes(8).toString('hex');
}
