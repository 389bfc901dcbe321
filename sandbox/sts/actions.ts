/** STS: only GetCallerIdentity, which needs no permission and cannot be denied. */
import { ACCOUNT_ID } from '../ids.ts';
import type { QueryAction } from '../query-protocol.ts';

/** Every caller is the account itself: keys are not checked here. */
export function createStsActions(): Map<string, QueryAction> {
  return new Map<string, QueryAction>([
    ['GetCallerIdentity', () => ({ Arn: `arn:aws:iam::${ACCOUNT_ID}:root`, UserId: ACCOUNT_ID, Account: ACCOUNT_ID })],
  ]);
}
