/** What `orchestrator pace` may ask of a run, and what is said of it. Pure; docs/decisions/0045-operator-pace.md. */
import { AppError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Action } from '../model/actions.ts';
import type { FleetSnapshot } from '../model/fleet-snapshot.ts';
import { intervalOf, operatorPaceOf, pausedUntilMs } from '../model/operator-pace.ts';
import { drainAtMs, isDraining } from '../model/run-deadlines.ts';
import { isGivenUp } from '../model/instance-state.ts';
import type { InstanceRecord, RunRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';
import { addressesInWords, type OperatorPace, rateOf } from '../plan/host-pace.ts';
import { forecastEnd } from './shares/end-forecast.ts';
import { isAtWork, pacesOf } from './site-cap.ts';

/** What the operator asks for now, in milliseconds; what is omitted stays as it is. */
export interface PaceRequest {
  intervalMs?: number;
  pauseMs?: number;
  isForNextPlan?: boolean;
}

/**
 * What the run is to keep from now on. The addresses stay those of the first request, so that a later one does not let
 * more of them in. Throws `pace-too-fast` for an interval that is not longer than the run's own.
 */
export function operatorPace(
  run: RunRecord,
  fleet: FleetSnapshot,
  { intervalMs, pauseMs, isForNextPlan = false }: PaceRequest,
  nowMs: number,
): OperatorPace {
  const before = operatorPaceOf(run);
  if (intervalMs !== undefined) refuseFaster(run, intervalMs);
  return {
    atMs: nowMs,
    intervalMs: intervalMs ?? before?.intervalMs ?? null,
    pausedUntilMs: pauseMs === undefined ? (before?.pausedUntilMs ?? null) : nowMs + pauseMs,
    addresses: before?.addresses ?? addressesOf(run, fleet),
    isForNextPlan: isForNextPlan || before?.isForNextPlan === true,
    runId: run.id,
  };
}

/**
 * The number of addresses that send requests or boot: an operator who pauses a run that has just begun does not want a
 * smaller fleet for the rest of it. Without any, those of the plan.
 */
function addressesOf({ plan }: RunRecord, { latest }: FleetSnapshot): number {
  const counts = (record: InstanceRecord): boolean => record.publicKey === null || isAtWork(record);
  return [...latest.values()].filter((r) => !isGivenUp(r) && counts(r)).length || plan.instances;
}

/** The end of what the operator has asked for. */
export const resetPace = (run: Pick<RunRecord, 'id'>, nowMs: number): OperatorPace => ({
  atMs: nowMs,
  intervalMs: null,
  pausedUntilMs: null,
  addresses: null,
  isForNextPlan: false,
  runId: run.id,
});

function refuseFaster(run: RunRecord, intervalMs: number): void {
  const ownMs = ownIntervalMs(run);
  if (intervalMs > ownMs) return;
  const own = formatDuration(ownMs);
  throw new AppError(
    'pace-too-fast',
    `run ${run.id} has an interval of ${own} by its configuration or the robots.txt of the site: ${formatDuration(intervalMs)} would not be slower`,
    { hint: `Ask for more than ${own}; orchestrator pace ${run.id} --reset goes back to ${own}.` },
  );
}

/** The shortest interval that the run has at any of its hosts without an operator. */
const ownIntervalMs = (run: RunRecord): number => Math.min(...pacesOf(run).map(({ intervalMs }) => intervalMs));

/** Such as `20s between two requests of one address instead of 10s …`. */
export function operatorPaceInWords(run: RunRecord): string {
  const pace = operatorPaceOf(run);
  const ownMs = ownIntervalMs(run);
  if (pace === null) return `${formatDuration(ownMs)} between two requests of one address, as configured`;
  const { intervalMs, addresses } = pace;
  const delayMs = Math.max(ownMs, intervalMs ?? 0);
  const rate = Number(rateOf({ addresses, delayMs }).toPrecision(3));
  return [
    ...(pausedUntilMs(run) > pace.atMs
      ? [`no request until ${new Date(pausedUntilMs(run)).toISOString().slice(0, 19).replace('T', ' ')} UTC`]
      : []),
    ...(intervalMs === null
      ? []
      : [`${formatDuration(intervalMs)} between two requests of one address instead of ${formatDuration(ownMs)}`]),
    `no address is added to make up for it (at most ${rate}/s, as ${addressesInWords(addresses, 'makes', 'make')} at ${formatDuration(delayMs)})`,
    ...(pace.isForNextPlan ? ['the next plan keeps it'] : []),
  ].join(', ');
}

/** Says once what the operator has asked for, and whether the run is late with it. */
export function operatorPaceNotes(world: World): Action[] {
  const { run, notedKeys } = world;
  if (run.operatorPace === undefined) return [];
  const key = `pace ${run.operatorPace.atMs}`;
  if (notedKeys.has(key)) return [];
  const words = operatorPaceInWords(run);
  const what =
    operatorPaceOf(run) === null
      ? `the operator has reset the pace: ${words}`
      : `the operator asks for another pace: ${words}`;
  const detail = isDraining(world) ? what : `${what}; ${endInWords(world)}`;
  return [{ kind: 'note', note: { key, event: 'decision', detail }, alarm: true }];
}

function endInWords(world: World): string {
  const { p50Ms } = forecastEnd(world);
  const lateMs = (p50Ms ?? Infinity) - drainAtMs(world.run);
  if (lateMs <= 0) return 'the crawl is expected to end in time';
  const when = lateMs === Infinity ? 'later than' : `${formatDuration(lateMs)} after`;
  return `the crawl would end ${when} the last moment for it, so the run will be late: what is there by then is published without the rest`;
}

/** The operator's part in a late run; null where it cost none of the `left` products. */
export function slowedByOperator(run: RunRecord, left: number, endMs: number): string | null {
  const pace = operatorPaceOf(run);
  if (left === 0 || pace === null) return null;
  const pausedMs = Math.max(0, Math.min(pausedUntilMs(run), endMs) - pace.atMs);
  const share = 1 - ownIntervalMs(run) / intervalOf(run);
  const lostMs = pausedMs + share * Math.max(0, endMs - pace.atMs - pausedMs);
  const cost = Math.floor((pace.addresses * lostMs) / run.plan.paceMs);
  if (cost === 0) return null;
  return `${cost >= left ? 'all' : `about ${cost}`} of them because the operator asked for a slower pace: ${operatorPaceInWords(run)}`;
}
