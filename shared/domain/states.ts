/**
 * The states of a run and of an instance, and the moves between them. phases.ts holds the meaning and the time limit of
 * each as data, from which docs/states.md is generated.
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
  held: ['completed', 'cancelled'],
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
  banned: ['ready', 'crawling', 'uploading', 'done', 'lost'],
};

export function canMoveInstance(from: InstancePhase, to: InstancePhase): boolean {
  return INSTANCE_MOVES[from].includes(to);
}

/** Phases in which the instance may hold products or results, so its silence matters. */
export function isServing(phase: InstancePhase): boolean {
  return phase === 'ready' || phase === 'crawling' || phase === 'banned' || phase === 'uploading';
}
