/**
 * The states of a run and of an instance, and the moves between them.
 *
 * Run:
 *   planned    stored, nothing launched yet
 *   launching  claims are being turned into instances
 *   crawling   at least one instance takes products
 *   releasing  every shard is closed; instances and balancer are being removed
 *   loading    the last parts go into staging
 *   completed | held | banned | failed | cancelled   ends
 *
 * Instance (one per slot and epoch):
 *   claimed      the launch is written down, EC2 not yet asked or not yet answered
 *   pending      EC2 has accepted it
 *   booting      EC2 says running, no hello yet
 *   ready        it said hello and is (or will be) a target of the balancer
 *   crawling     it has been granted products
 *   uploading    its queue is empty and sealed; parts and manifest are on their way
 *   done         manifest verified
 *   terminating  EC2 was asked to terminate it
 *   terminated   EC2 says so
 *   lost | banned  given up, with a reason; still to be terminated
 */

export const RUN_PHASES = [
  'planned',
  'launching',
  'crawling',
  'releasing',
  'loading',
  'completed',
  'held',
  'banned',
  'failed',
  'cancelled',
] as const;
export type RunPhase = (typeof RUN_PHASES)[number];

const RUN_MOVES: Record<RunPhase, readonly RunPhase[]> = {
  planned: ['launching', 'completed', 'cancelled', 'failed'],
  launching: ['crawling', 'releasing'],
  crawling: ['releasing'],
  releasing: ['loading'],
  loading: ['completed', 'held', 'banned', 'failed', 'cancelled'],
  completed: [],
  held: ['completed'],
  banned: [],
  failed: [],
  cancelled: [],
};

export function isRunEnd(phase: RunPhase): boolean {
  return RUN_MOVES[phase].length === 0 || phase === 'held';
}

export function canMoveRun(from: RunPhase, to: RunPhase): boolean {
  return RUN_MOVES[from].includes(to);
}

export const INSTANCE_PHASES = [
  'claimed',
  'pending',
  'booting',
  'ready',
  'crawling',
  'uploading',
  'done',
  'terminating',
  'terminated',
  'lost',
  'banned',
] as const;
export type InstancePhase = (typeof INSTANCE_PHASES)[number];

const INSTANCE_MOVES: Record<InstancePhase, readonly InstancePhase[]> = {
  claimed: ['pending', 'booting', 'lost', 'terminated'],
  pending: ['booting', 'ready', 'lost', 'terminating', 'terminated'],
  booting: ['ready', 'lost', 'terminating', 'terminated'],
  ready: ['crawling', 'uploading', 'done', 'lost', 'banned', 'terminating'],
  crawling: ['uploading', 'done', 'lost', 'banned'],
  uploading: ['done', 'lost', 'banned'],
  done: ['terminating', 'terminated'],
  terminating: ['terminated'],
  terminated: [],
  lost: ['terminating', 'terminated'],
  banned: ['terminating', 'terminated', 'crawling'],
};

export function canMoveInstance(from: InstancePhase, to: InstancePhase): boolean {
  return INSTANCE_MOVES[from].includes(to);
}

/** Phases in which the instance may hold products, so its silence matters. */
export function isServing(phase: InstancePhase): boolean {
  return phase === 'ready' || phase === 'crawling' || phase === 'uploading';
}

/** Phases in which an EC2 instance may exist (or may be about to), so it can still cost money. */
export function mayCost(phase: InstancePhase): boolean {
  return phase !== 'terminated';
}
