/**
 * What each state means and what ends it. docs/states.md is made from this, and the checks over a run's history take their
 * limits from here: no state but an end may be without one.
 */
import type { InstancePhase, RunPhase } from './states.ts';

/**
 * The longest wait there is in a state. `boot`: RunLimits.bootMs. `power-off`: deadline + grace, when every machine has switched
 * itself off; then what is left is closed. `person`: nothing runs, nothing is paid; it stays until somebody decides. null: an end.
 */
export type LastLimit = 'boot' | 'power-off' | 'person' | null;

export interface PhaseFacts {
  meaning: string;
  /** The limits that end it before the last one, each with what is done then. */
  ends: string;
  last: LastLimit;
}

export const RUN_PHASE_FACTS: Record<RunPhase, PhaseFacts> = {
  planned: {
    meaning: 'Stored, nothing launched yet.',
    ends: 'The first look at the world moves it on. Without a main server nothing runs; the next `run` ends it when its deadline is past.',
    last: 'power-off',
  },
  launching: {
    meaning: 'Claims are being turned into instances.',
    ends: 'The first hello moves it to `crawling`. When no slot can be filled any more (capacity, rights, money) or the drain begins, it goes to `releasing`.',
    last: 'power-off',
  },
  crawling: {
    meaning: 'At least one instance takes products.',
    ends: 'Ends when every product has an outcome. A run in which nothing comes in raises an alarm after max(2 min, 10 intervals) and ends after max(15 min, twice that), in runs under 16 minutes after an eighth and a quarter of the time. At deadline minus the tail (4 %, 1 s to 1 min; more where uploading and loading were slower, up to a tenth of the run) everybody drains; whoever has not uploaded by then + `uploadMs` + `lostMs`, or 15 s after the deadline, is given up.',
    last: 'power-off',
  },
  releasing: {
    meaning: 'Every shard is closed; instances and balancer are being removed.',
    ends: 'Ends when every instance is seen going, or 30 s after the deadline. The call to terminate is repeated every `terminateMs`, with an alarm.',
    last: 'power-off',
  },
  loading: {
    meaning: 'The last parts go into staging.',
    ends: 'Ends with the last part. A part that cannot be read is put aside at once; `uploadMs` after the power-off what is loaded is published.',
    last: 'power-off',
  },
  completed: { meaning: 'The rows are published. The exit code says whether all of them.', ends: '', last: null },
  held: {
    meaning: 'The rows look suspicious and wait in staging; the result table is as it was.',
    ends: '`orchestrator publish` releases the rows, `orchestrator cancel` drops them.',
    last: 'person',
  },
  banned: {
    meaning: 'The site refuses the addresses, or too many of them. What was stored is published.',
    ends: '',
    last: null,
  },
  failed: {
    meaning: 'Nothing was crawled, the site has changed, or nothing came in any more. What was stored is published.',
    ends: '',
    last: null,
  },
  cancelled: {
    meaning: 'Ended by a person: after `stop` what was stored is published, after `cancel` nothing.',
    ends: '',
    last: null,
  },
};

export const INSTANCE_PHASE_FACTS: Record<InstancePhase, PhaseFacts> = {
  claimed: {
    meaning: 'The launch is written down; EC2 is not yet asked, or has not yet answered.',
    ends: 'A refusal ends it (`launch-refused`, `pool-dry`). Without an answer the same request is sent up to 12 times (`launch-unanswered`). A throttled or quota-bound one ends when it could not boot before the drain. What EC2 has not told of it by 30 s after the deadline is not waited for.',
    last: 'power-off',
  },
  pending: {
    meaning: 'EC2 has accepted it.',
    ends: '`bootMs` from the launch without a hello: `no-hello`, replaced once.',
    last: 'boot',
  },
  booting: {
    meaning: 'EC2 says running, no hello yet.',
    ends: '`bootMs` from the launch without a hello: `no-hello`, replaced once, its console output kept.',
    last: 'boot',
  },
  ready: {
    meaning: 'It said hello and is (or will be) a target of the balancer.',
    ends: '`healthyMs` unhealthy while others are fine: `never-healthy`. `lostMs` of silence, twice that while the balancer finds it healthy: `heartbeat-lost`.',
    last: 'power-off',
  },
  crawling: {
    meaning: 'It has been granted products.',
    ends: '`lostMs` of silence, twice that while the balancer finds it healthy: `heartbeat-lost`. `uploadMs` + `lostMs` after the drain, or 15 s after the deadline: `overdue`.',
    last: 'power-off',
  },
  uploading: {
    meaning: 'Its queue is empty and sealed; parts and manifest are on their way.',
    ends: '`lostMs` of silence, twice that while the balancer finds it healthy: `heartbeat-lost`; the bucket is asked before that. `uploadMs` + `lostMs` after the drain, or 15 s after the deadline: `overdue`.',
    last: 'power-off',
  },
  done: { meaning: 'Its manifest is verified.', ends: 'It is terminated at the next look.', last: 'power-off' },
  terminating: {
    meaning: 'EC2 was asked to terminate it.',
    ends: '`terminateMs` without an end: asked again, with an alarm. After that its own timer switches it off at deadline + grace, and then `orchestrator gc` finds it.',
    last: 'power-off',
  },
  terminated: { meaning: 'EC2 says so, or it never existed.', ends: '', last: null },
  lost: {
    meaning: 'Given up, with a reason; its parts are loaded and its open products go back, then it is terminated.',
    ends: 'Closed and terminated at the next look; repeated until both are done.',
    last: 'power-off',
  },
  banned: {
    meaning: 'The site refuses its address: it sends no request, keeps its machine, and may come back.',
    ends: 'Its cool-down (`site.ban.cool_down`) ends it; with `site.on_ban: replace` its slot gets another address. What it has not crawled goes to others meanwhile.',
    last: 'power-off',
  },
};

/** A chunk is a piece of a shard; a shard is the chunks granted to one (slot, epoch) and is closed by its manifest. */
export const CHUNK_STATES = ['waiting', 'granted', 'closed'] as const;
export type ChunkState = (typeof CHUNK_STATES)[number];

export const CHUNK_FACTS: Record<ChunkState, PhaseFacts & { moves: readonly ChunkState[] }> = {
  waiting: {
    meaning: 'Nobody owns it. It is offered through the balancer, again and again.',
    ends: 'A grant, asked for in a heartbeat, gives it to one (slot, epoch). It is closed when a result for the last of its products has come in, and at the end of the run, when what is left fails with the reason why nobody crawled it.',
    last: 'power-off',
    moves: ['granted', 'closed'],
  },
  granted: {
    meaning: 'One (slot, epoch) crawls it, or has crawled it: with an outcome for each product it stays as it is.',
    ends: 'When its epoch is closed or the instance gives it back, the products without an outcome become the next generation of the chunk, which waits. What is left at the end of the run fails.',
    last: 'power-off',
    moves: ['waiting'],
  },
  closed: {
    meaning: 'Nothing of it is left to crawl.',
    ends: '',
    last: null,
    moves: [],
  },
};
