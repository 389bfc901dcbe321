/** Calls that AWS refuses for missing keys or rights. */

/** The calls whose refusals are tracked: RunInstances, DescribeInstances, creation of the balancer. */
export type RightsCall = 'launch' | 'look' | 'balancer';

/** A series of refusals without a success between them. */
export interface Refused {
  cause: 'credentials' | 'denied';
  message: string;
  sinceMs: number;
  lastMs: number;
  count: number;
}

/** By call; null while AWS lets it through. */
export type Rights = Record<RightsCall, Refused | null>;

export const allRights = (): Rights => ({ launch: null, look: null, balancer: null });

/** Maximum time between two refusals of one series. */
const SAME_ROW_MS = 300_000;

/** Records a refusal of the call. */
export function noteRefused(
  rights: Rights,
  call: RightsCall,
  { cause, message, nowMs }: Pick<Refused, 'cause' | 'message'> & { nowMs: number },
): void {
  const known = rights[call];
  const goesOn = known !== null && nowMs >= known.lastMs && nowMs - known.lastMs <= SAME_ROW_MS;
  rights[call] = {
    cause,
    message,
    sinceMs: goesOn ? known.sinceMs : nowMs,
    lastMs: nowMs,
    count: goesOn ? known.count + 1 : 1,
  };
}
