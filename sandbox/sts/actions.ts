/** STS, as far as a program asks who it is: GetCallerIdentity, which needs no right and cannot be denied. */
import { ACCOUNT_ID } from '../ids.ts';
import type { QueryAction } from '../query-protocol.ts';

/** Whoever asks is the account itself: keys are not looked at here. */
export function createStsActions(): Map<string, QueryAction> {
  return new Map<string, QueryAction>([
    ['GetCallerIdentity', () => ({ Arn: `arn:aws:iam::${ACCOUNT_ID}:root`, UserId: ACCOUNT_ID, Account: ACCOUNT_ID })],
  ]);
}
