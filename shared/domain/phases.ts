/**
 * What each state means and what ends it. docs/states.md is generated from this, and the checks of a run's history use
 * these limits: every state except an end state must have one.
 */
import type { InstancePhase, RunPhase } from './states.ts';

/**
 * The longest wait in a state. `boot`: RunLimits.bootMs. `power-off`: deadline + grace, when every machine has switched
 * itself off; then the rest is closed. `person`: nothing runs or costs money; it stays until a person decides. null: an
 * end state.
 */
export type LastLimit = 'boot' | 'power-off' | 'person' | null;

export interface PhaseRule {
  meaning: string;
  /** The limits that end it before the last one, each with its consequence. */
  ends: string;
  last: LastLimit;
}

export const RUN_PHASE_FACTS: Record<RunPhase, PhaseRule> = {
  planned: {
    meaning: 'Stored, nothing launched yet.',
    ends: 'The first observation ends it. Without a main server nothing runs; the next `run` ends it when its deadline is past.',
    last: 'power-off',
  },
  launching: {
    meaning: 'Claims are being turned into instances.',
    ends: 'The first hello moves it to `crawling`. When no slot can be filled any more (capacity, permissions, budget) or the drain begins, it moves to `releasing`.',
    last: 'power-off',
  },
  crawling: {
    meaning: 'At least one instance accepts products.',
    ends: 'Ends when every product has an outcome. A run without new results raises an alarm after max(2 min, 10 intervals) and ends after max(15 min, twice that), in runs under 16 minutes after an eighth and a quarter of the time. At deadline minus the tail (4 %, 1 s to 1 min; more where uploading and loading were slower, up to a tenth of the run) every instance drains; an instance that has not uploaded by then + `uploadMs` + `lostMs`, or 15 s after the deadline, is given up.',
    last: 'power-off',
  },
  releasing: {
    meaning: 'Every shard is closed; instances and load balancer are being removed.',
    ends: 'Ends when EC2 shows every instance terminating, or 30 s after the deadline. The terminate call is repeated every `terminateMs`, with an alarm.',
    last: 'power-off',
  },
  loading: {
    meaning: 'The last parts are loaded into staging.',
    ends: 'Ends with the last part. A part that cannot be read is set aside at once; `uploadMs` after the power-off the loaded rows are published.',
    last: 'power-off',
  },
  completed: { meaning: 'The rows are published. The exit code shows whether all of them.', ends: '', last: null },
  held: {
    meaning: 'The rows look suspicious and wait in staging; the result table is unchanged.',
    ends: '`orchestrator publish` releases the rows, `orchestrator cancel` drops them.',
    last: 'person',
  },
  banned: {
    meaning: 'The site refuses the addresses, or too many of them. What was stored is published.',
    ends: '',
    last: null,
  },
  failed: {
    meaning: 'Nothing was crawled, the site has changed, or the run stalled. What was stored is published.',
    ends: '',
    last: null,
  },
  cancelled: {
    meaning: 'Ended by a person: after `stop` what was stored is published, after `cancel` nothing.',
    ends: '',
    last: null,
  },
};

export const INSTANCE_PHASE_FACTS: Record<InstancePhase, PhaseRule> = {
  claimed: {
    meaning: 'The launch request is stored; EC2 has not been called or has not answered yet.',
    ends: 'A refusal ends it (`launch-refused`, `pool-dry`). Without an answer the same request is sent up to 12 times (`launch-unanswered`). A throttled or quota-bound claim ends when its instance could no longer boot before the drain. 30 s after the deadline the main server stops waiting for an answer from EC2.',
    last: 'power-off',
  },
  pending: {
    meaning: 'EC2 has accepted the launch.',
    ends: '`bootMs` from the launch without a hello: `no-hello`, replaced once.',
    last: 'boot',
  },
  booting: {
    meaning: 'EC2 shows it running, no hello yet.',
    ends: '`bootMs` from the launch without a hello: `no-hello`, replaced once, its console output kept.',
    last: 'boot',
  },
  ready: {
    meaning: 'It sent its hello and is (or will be) a target of the load balancer.',
    ends: '`healthyMs` unhealthy while other instances are healthy: `never-healthy`. `lostMs` of silence, twice that while the load balancer finds it healthy: `heartbeat-lost`.',
    last: 'power-off',
  },
  crawling: {
    meaning: 'It has been granted products.',
    ends: '`lostMs` of silence, twice that while the load balancer finds it healthy: `heartbeat-lost`. `uploadMs` + `lostMs` after the drain, or 15 s after the deadline: `overdue`.',
    last: 'power-off',
  },
  uploading: {
    meaning: 'Its queue is empty and sealed; parts and manifest are on their way.',
    ends: '`lostMs` of silence, twice that while the load balancer finds it healthy: `heartbeat-lost`, after a check of the bucket. `uploadMs` + `lostMs` after the drain, or 15 s after the deadline: `overdue`.',
    last: 'power-off',
  },
  done: { meaning: 'Its manifest is verified.', ends: 'It is terminated in the next round.', last: 'power-off' },
  terminating: {
    meaning: 'EC2 was called to terminate it.',
    ends: '`terminateMs` without an end: called again, with an alarm. After that its own timer switches it off at deadline + grace, and then `orchestrator gc` finds it.',
    last: 'power-off',
  },
  terminated: { meaning: 'EC2 shows it terminated, or it never existed.', ends: '', last: null },
  lost: {
    meaning: 'Given up, with a reason; its parts are loaded and its open products reassigned, then it is terminated.',
    ends: 'Closed and terminated in the next round; repeated until both are done.',
    last: 'power-off',
  },
  banned: {
    meaning: 'The site refuses its address: it sends no request, keeps its machine, and may come back.',
    ends: 'Its cool-down (`site.ban.cool_down`) ends it; with `site.on_ban: replace` its slot gets another address. Its uncrawled products are reassigned at once.',
    last: 'power-off',
  },
};

/** A chunk is a piece of a shard; a shard is the chunks granted to one (slot, epoch) and is closed by its manifest. */
export const CHUNK_STATES = ['waiting', 'granted', 'closed'] as const;
export type ChunkState = (typeof CHUNK_STATES)[number];

export const CHUNK_FACTS: Record<ChunkState, PhaseRule & { moves: readonly ChunkState[] }> = {
  waiting: {
    meaning: 'It has no owner. It is offered through the load balancer, repeatedly.',
    ends: 'A grant, requested in a heartbeat, assigns it to one (slot, epoch). It is closed when the last of its products has a result, and at the end of the run, when the remaining products fail with the reason why no instance crawled them.',
    last: 'power-off',
    moves: ['granted', 'closed'],
  },
  granted: {
    meaning: 'One (slot, epoch) crawls it, or has crawled it: with an outcome for each product it stays in this state.',
    ends: 'When its epoch is closed or the instance returns it, the products without an outcome become the next generation of the chunk, which waits. Products left at the end of the run fail.',
    last: 'power-off',
    moves: ['waiting'],
  },
  closed: {
    meaning: 'None of its products is left to crawl.',
    ends: '',
    last: null,
    moves: [],
  },
};
