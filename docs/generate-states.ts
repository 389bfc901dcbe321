/** docs/states.md from the state tables of shared/domain. */
import { CHUNK_FACTS, CHUNK_STATES, INSTANCE_PHASE_FACTS, type LastLimit, type PhaseFacts, RUN_PHASE_FACTS } from '../shared/domain/phases.ts';
import { limitsFor, type RunLimits } from '../shared/domain/limits.ts';
import { formatDuration } from '../shared/domain/quantity.ts';
import { INSTANCE_PHASES, RUN_PHASES, canMoveInstance, canMoveRun } from '../shared/domain/states.ts';

const LIMIT_MEANINGS: Record<keyof RunLimits, string> = {
  heartbeatMs: 'how often an instance speaks when nothing changes',
  lostMs: 'silence after which an instance that EC2 shows running is given up: 12 heartbeats, or 20 s, or a sixth of a shorter run; twice that while the balancer finds it healthy',
  bootMs: 'from the accepted launch to the signed hello; never under twice the slow boot of the plan: 4m on AWS, 10m where machines install Chromium',
  uploadMs: 'from the drain, or from the empty shard, to the manifest',
  terminateMs: 'from the call to terminate to EC2 saying so; then it is asked again, with an alarm',
  partMs: 'how long an instance collects results before it writes a part',
  dryPoolMs: 'how long a pool that had no machine is left alone; doubled when it is still dry, twice',
  quotaPauseMs: 'from a refusal for the quota to the next try, unless an instance ends before',
  healthyMs: 'from the hello to the first healthy check, while others are healthy',
};

const LAST: Record<Exclude<LastLimit, null>, string> = {
  boot: 'boot limit',
  'power-off': 'deadline + `run.grace`, then what closing takes',
  person: 'none: it costs nothing and waits for you',
};

export function statesPage(): string {
  return [
    '# States',
    '',
    'Made from `shared/domain/states.ts`, `phases.ts` and `limits.ts` by `npm run docs`; do not edit it by hand.',
    '',
    'Every move is one conditional update and one row in `crawlfleet_events`; no other move is possible. No state waits for ever: *ends* says',
    'what moves it on, *at the latest* the limit that holds whatever happens. At deadline + `run.grace` every instance has switched itself off,',
    'main server or not; what it left in the bucket is loaded then, as far as the bucket can be read, and the run ends. Two things only stop the clock of a run: no main server',
    '(the next `run` or `resume` ends what is overdue) and a database that does not answer (it is asked again and again; S3 keeps the results).',
    '',
    ...section('Run', RUN_PHASES, RUN_PHASE_FACTS, (from) => RUN_PHASES.filter((to) => canMoveRun(from, to))),
    ...section('Instance', INSTANCE_PHASES, INSTANCE_PHASE_FACTS, (from) =>
      INSTANCE_PHASES.filter((to) => canMoveInstance(from, to)),
    ),
    'One row for each (slot, epoch): a replacement fills the same slot with the next epoch. Reasons such as `no-hello` are explained in',
    '[what-happens-when.md](what-happens-when.md).',
    '',
    ...section('Chunk', CHUNK_STATES, CHUNK_FACTS, (from) => CHUNK_FACTS[from].moves),
    'A shard is what one (slot, epoch) has been granted. It has no state of its own: it is open while its instance serves, and closed by the',
    'manifest of its epoch, which the instance writes, or the main server for one that is lost.',
    '',
    '## Limits',
    '',
    'Scaled to the time from start to deadline, so that a dry run of 45 s and a night follow the same rules.',
    '',
    '| Limit | 45 s | 1 h | 4 h | Is |',
    '|---|---|---|---|---|',
    ...limitRows(),
    '',
  ].join('\n');
}

function section<P extends string>(
  title: string,
  all: readonly P[],
  facts: Record<P, PhaseFacts>,
  movesOf: (from: P) => readonly P[],
): string[] {
  return [
    `## ${title}`,
    '',
    '```mermaid',
    'stateDiagram-v2',
    `  [*] --> ${all[0]!}`,
    ...all.flatMap((from) => movesOf(from).map((to) => `  ${from} --> ${to}`)),
    ...all.filter((p) => facts[p].last === null).map((p) => `  ${p} --> [*]`),
    '```',
    '',
    '| State | Meaning | Moves to | Ends | At the latest |',
    '|---|---|---|---|---|',
    ...all.map((p) => row(p, facts[p], movesOf(p))),
    '',
  ];
}

function row(phase: string, { meaning, ends, last }: PhaseFacts, moves: readonly string[]): string {
  const to = moves.length > 0 ? moves.map((m) => `\`${m}\``).join(', ') : '-';
  return `| \`${phase}\` | ${meaning} | ${to} | ${ends || 'an end'} | ${last === null ? '-' : LAST[last]} |`;
}

function limitRows(): string[] {
  const columns = [45_000, 3_600_000, 14_400_000].map(limitsFor);
  return (Object.keys(LIMIT_MEANINGS) as (keyof RunLimits)[]).map((name) => {
    const values = columns.map((limits) => formatDuration(limits[name])).join(' | ');
    return `| \`${name}\` | ${values} | ${LIMIT_MEANINGS[name]} |`;
  });
}
