/** docs/states.md from the state tables of shared/domain. */
import { CHUNK_FACTS, CHUNK_STATES, INSTANCE_PHASE_FACTS, type LastLimit, type PhaseRule, RUN_PHASE_FACTS } from '../shared/domain/phases.ts';
import { limitsFor, type RunLimits } from '../shared/domain/limits.ts';
import { formatDuration } from '../shared/domain/quantity.ts';
import { INSTANCE_PHASES, RUN_PHASES, canMoveInstance, canMoveRun } from '../shared/domain/states.ts';

const LIMIT_MEANINGS: Record<keyof RunLimits, string> = {
  heartbeatMs: 'time between heartbeats of an instance when nothing changes',
  lostMs: 'silence after which an instance that EC2 shows running is given up: 12 heartbeats, or 20 s, or a sixth of a shorter run; twice that while the balancer finds it healthy',
  bootMs: 'from the accepted launch to the signed hello; never under twice the slow boot of the plan: 4m on AWS, 10m where machines install Chromium',
  uploadMs: 'from the drain, or from the empty shard, to the manifest',
  terminateMs: 'from the terminate call until EC2 confirms it; then the call is repeated, with an alarm',
  partMs: 'how long an instance collects results before it writes a part',
  dryPoolMs: 'how long a pool without capacity rests; doubled up to twice while it stays without',
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
    'Every transition is one conditional update and one row in `crawlfleet_events`. Every state ends: *Ends* says what ends it normally, *At the latest* gives',
    'the limit that always holds. At deadline + `run.grace` every instance has powered itself off, with or without a main server. What it left in the bucket is',
    'then loaded, as far as the bucket can be read, and the run ends. Only two things delay this: no main server (the next `run` or `resume` ends what is',
    'overdue), and a database that does not answer (queries are repeated; S3 keeps the results).',
    '',
    ...section('Run', RUN_PHASES, RUN_PHASE_FACTS, (from) => RUN_PHASES.filter((to) => canMoveRun(from, to))),
    ...section('Instance', INSTANCE_PHASES, INSTANCE_PHASE_FACTS, (from) =>
      INSTANCE_PHASES.filter((to) => canMoveInstance(from, to)),
    ),
    'One row for each (slot, epoch): a replacement fills the same slot with the next epoch. Reasons such as `no-hello` are explained in',
    '[what-happens-when.md](what-happens-when.md).',
    '',
    ...section('Chunk', CHUNK_STATES, CHUNK_FACTS, (from) => CHUNK_FACTS[from].moves),
    'A shard is the set of chunks granted to one (slot, epoch). It has no state of its own: it is open while its instance serves, and closed by the manifest of',
    'its epoch. The instance writes that manifest; for a lost instance the main server does.',
    '',
    '## Limits',
    '',
    'Limits scale with the time from start to deadline, so a dry run of 45 s and a whole night follow the same rules.',
    '',
    '| Limit | 45 s | 1 h | 4 h | Meaning |',
    '|---|---|---|---|---|',
    ...limitRows(),
    '',
  ].join('\n');
}

function section<P extends string>(
  title: string,
  all: readonly P[],
  facts: Record<P, PhaseRule>,
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

function row(phase: string, { meaning, ends, last }: PhaseRule, moves: readonly string[]): string {
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
