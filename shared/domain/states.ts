/**
 * The states of a run and of an instance, and the moves between them. phases.ts holds the meaning and the time limit of
 * each as data, from which docs/states.md is generated.
 */

/** Phases, each with those that may follow it; only phases of the table itself can. */
const table = <P extends string>(moves: Record<P, readonly NoInfer<P>[]>): Record<P, readonly P[]> => moves;

const RUN_MOVES = table({
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
});
export type RunPhase = keyof typeof RUN_MOVES;
export const RUN_PHASES = Object.keys(RUN_MOVES) as RunPhase[];

export function isRunEnd(phase: RunPhase): boolean {
  return RUN_MOVES[phase].length === 0 || phase === 'held';
}

export const OPEN_RUN_PHASES = RUN_PHASES.filter((phase) => !isRunEnd(phase));

export function canMoveRun(from: RunPhase, to: RunPhase): boolean {
  return RUN_MOVES[from].includes(to);
}

const INSTANCE_MOVES = table({
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
});
export type InstancePhase = keyof typeof INSTANCE_MOVES;
export const INSTANCE_PHASES = Object.keys(INSTANCE_MOVES) as InstancePhase[];

export function canMoveInstance(from: InstancePhase, to: InstancePhase): boolean {
  return INSTANCE_MOVES[from].includes(to);
}

/** Phases of an instance that is given up, or ending: it must not learn that a late heartbeat has been heard. */
export const isOver = (phase: InstancePhase): boolean =>
  phase === 'lost' || phase === 'terminating' || phase === 'terminated';

/** Phases in which the instance may hold products or results, so its silence matters. */
export function isServing(phase: InstancePhase): boolean {
  return phase === 'ready' || phase === 'crawling' || phase === 'banned' || phase === 'uploading';
}
