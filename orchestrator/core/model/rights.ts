/** Calls that AWS refuses for missing keys or rights. */
import type { RunLimits } from '../../../shared/domain/limits.ts';

/**
 * The calls whose refusals are tracked: RunInstances, DescribeInstances, creation of the balancer, its health and that
 * of its targets, RegisterTargets, TerminateInstances.
 */
export type RightsCall = 'launch' | 'look' | 'balancer' | 'health' | 'register' | 'terminate';

/** The rights without which no product can be handed out to a new instance. */
const NEEDED = ['look', 'health', 'register'] as const satisfies readonly RightsCall[];

/** A series of refusals without a success between them. */
export interface Refused {
  cause: 'credentials' | 'denied';
  message: string;
  sinceMs: number;
  lastMs: number;
  count: number;
}

/** The refusals by call; null while AWS lets it through. */
export type Rights = Record<RightsCall, Refused | null>;

export const allRights = (): Rights => ({
  launch: null,
  look: null,
  balancer: null,
  health: null,
  register: null,
  terminate: null,
});

/** What AWS refuses at the moment of what new instances need, the call that has been refused for longest first. */
export const neededRefused = (rights: Rights): Refused[] =>
  NEEDED.flatMap((call) => rights[call] ?? []).toSorted((a, b) => a.sinceMs - b.sinceMs);

/** No slip: it was refused again, two heartbeats later. */
export const isRepeated = ({ sinceMs, lastMs }: Refused, { heartbeatMs }: Pick<RunLimits, 'heartbeatMs'>): boolean =>
  lastMs - sinceMs >= 2 * heartbeatMs;

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
