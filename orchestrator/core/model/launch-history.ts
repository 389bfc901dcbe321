/** What a run's launches came to. It follows from the rows of the instances alone, so it survives a restart. Pure. */
import type { StateReason } from '../cloud/compute.ts';
import type { InstanceRecord } from './stores.ts';
import { isGivenUp, wasNeverLaunched } from './instance-state.ts';

export interface Pool {
  region: string;
  subnetId: string;
  instanceType: string;
}

export interface Pools {
  /** The regions in the order of the configuration; without those in which a launch could not be prepared. */
  regions: readonly { name: string; subnetIds: readonly string[] }[];
  /** The instance types in the order in which they are tried. */
  instanceTypes: readonly string[];
}

export interface LaunchHistory {
  /** Everything that EC2 has launched, may have launched, or is about to launch. */
  bills: readonly LaunchBill[];
  /** The launched instances in the order of their launches; empty while none has died at launch. */
  ends: readonly { atMs: number; end: 'up' | 'died' | 'open' }[];
  /** Time of EC2's last permanent refusal, by instance type for types refused everywhere, else by pool. */
  closedPools: ReadonlyMap<string, number>;
  /** The answers by pool; empty while EC2 has never reported a lack of capacity. */
  dryPools: ReadonlyMap<string, PoolAnswers>;
  /** When EC2 last refused a launch for the account's quota, launched an instance, and ended one; else -Infinity. */
  quota: { refusedMs: number; givenMs: number; endedMs: number };
}

export interface LaunchBill {
  /** The region; omitted: the run's first. */
  region?: string;
  instanceType: string;
  launchedAtMs: number;
  /** When it ended; null for one that may be alive. */
  endedAtMs: number | null;
}

interface PoolAnswers {
  /** Refusals since it last gave an instance, oldest first. */
  refusedMs: number[];
  /** A claim for it waits for EC2's answer. */
  asked: boolean;
}

export function launchHistory(instances: readonly InstanceRecord[]): LaunchHistory {
  return {
    bills: billsOf(instances),
    ends: endsOf(instances),
    closedPools: closedPoolsOf(instances),
    dryPools: dryPoolsOf(instances),
    quota: quotaTimesOf(instances),
  };
}

export const poolKey = ({ subnetId, instanceType }: Omit<Pool, 'region'>): string => `${instanceType} in ${subnetId}`;

/** Ends that were requested, on the machine or from outside, say nothing about the launch. */
const ASKED_FOR: readonly string[] = ['Client.UserInitiatedShutdown', 'Client.InstanceInitiatedShutdown'];

/** Why EC2 itself ended the instance before it said hello; null for every other one. */
export function deathAtLaunch(record: InstanceRecord): StateReason | null {
  const { stateReason } = record;
  if (stateReason === null || record.publicKey !== null || !isGivenUp(record)) return null;
  return ASKED_FOR.includes(stateReason.code) ? null : stateReason;
}

const billsOf = (instances: readonly InstanceRecord[]): LaunchBill[] =>
  instances
    .filter((r) => r.instanceId !== null || r.phase === 'claimed' || (r.phase !== 'terminated' && !wasNeverLaunched(r)))
    .map((r) => ({
      ...(r.request.region === undefined ? {} : { region: r.request.region }),
      instanceType: r.request.instanceType,
      launchedAtMs: askedAtMs(r),
      endedAtMs: r.phase === 'terminated' ? (r.terminatedAtMs ?? r.phaseAtMs) : null,
    }));

function endsOf(instances: readonly InstanceRecord[]): LaunchHistory['ends'] {
  if (!instances.some((r) => deathAtLaunch(r) !== null)) return [];
  return instances
    .filter((r) => r.instanceId !== null)
    .map((r) => ({ atMs: askedAtMs(r), end: endOf(r) }))
    .sort((a, b) => a.atMs - b.atMs);
}

function endOf(record: InstanceRecord): 'up' | 'died' | 'open' {
  if (deathAtLaunch(record) !== null) return 'died';
  return record.phase === 'pending' ? 'open' : 'up';
}

function closedPoolsOf(instances: readonly InstanceRecord[]): ReadonlyMap<string, number> {
  const closed = new Map<string, number>();
  for (const { answer, request, launchedAtMs } of instances) {
    if (answer?.kind !== 'refused' || launchedAtMs === null) continue;
    const key =
      answer.cause === 'type'
        ? request.instanceType
        : answer.cause === 'zone' || answer.cause === 'invalid'
          ? poolKey(request)
          : null;
    if (key !== null) closed.set(key, Math.max(closed.get(key) ?? -Infinity, launchedAtMs));
  }
  return closed;
}

function dryPoolsOf(instances: readonly InstanceRecord[]): ReadonlyMap<string, PoolAnswers> {
  const pools = new Map<string, PoolAnswers>();
  // Pools without a refusal are open. Most runs have none, and need not sort thousands of rows.
  if (!instances.some(isPoolRefusal)) return pools;
  const calls = instances.filter((r) => r.launchedAtMs !== null || r.phase === 'claimed');
  for (const record of calls.toSorted((a, b) => askedAtMs(a) - askedAtMs(b))) {
    const key = poolKey(record.request);
    const answers = pools.get(key) ?? { refusedMs: [], asked: false };
    if (record.instanceId !== null) answers.refusedMs = [];
    else if (isPoolRefusal(record)) answers.refusedMs.push(askedAtMs(record));
    else if (record.phase === 'claimed') answers.asked = true;
    pools.set(key, answers);
  }
  return pools;
}

/** EC2 has reported a lack of capacity in the record's pool. */
const isPoolRefusal = ({ answer }: InstanceRecord): boolean => answer?.kind === 'refused' && answer.cause === 'pool';

const askedAtMs = (record: InstanceRecord): number => record.launchedAtMs ?? record.claimedAtMs;

function quotaTimesOf(instances: readonly InstanceRecord[]): LaunchHistory['quota'] {
  const times = { refusedMs: -Infinity, givenMs: -Infinity, endedMs: -Infinity };
  for (const record of instances) {
    const askedMs = record.launchedAtMs ?? -Infinity;
    if (record.instanceId !== null) {
      times.givenMs = Math.max(times.givenMs, askedMs);
      times.endedMs = Math.max(times.endedMs, record.terminatedAtMs ?? -Infinity);
    } else if (record.answer?.kind === 'refused' && record.answer.cause === 'quota') {
      times.refusedMs = Math.max(times.refusedMs, askedMs);
    }
  }
  return times;
}
