/** The timeline of a run in words, from its events. Pure: what `orchestrator explain` prints. */
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { InstancePhase, RunPhase } from '../../../shared/domain/states.ts';
import { INSTANCE_BUNDLE, LAUNCH_BUNDLE } from '../act/launches/updated-bundle.ts';
import { LOSS_REASON } from '../model/loss-reason.ts';
import type { RunEvent, RunRecord } from '../model/stores.ts';

export interface TimelineEntry {
  atMs: number;
  text: string;
}

/** Events of the same kind within this share of the run become one line, such as the boots of a fleet. */
const GROUP_SHARE = 1 / 100;
const LEAST_GROUP_MS = 5_000;
/** Decisions that differ in their numbers only become one line until this share of the run passes without one. */
const REPEAT_SHARE = 1 / 10;

const RUN_WORDS: Partial<Record<RunPhase, string>> = {
  planned: 'the run is stored',
  launching: 'launching begins',
  crawling: 'the first instance is ready: products go out',
  releasing: 'the crawl is over: every epoch is closed, instances are being ended',
  loading: 'the last results are being loaded',
  completed: 'the rows are published',
  held: 'the results are held: a person has to check them',
  banned: 'the run ends banned; what it has is published',
  failed: 'the run has failed',
  cancelled: 'the run ends early',
};

const LOSS_WORDS: Record<string, string> = {
  [LOSS_REASON.noHello]: 'never said hello',
  [LOSS_REASON.silent]: 'fell silent',
  [LOSS_REASON.overdue]: 'did not bring its results to the bucket in time',
  [LOSS_REASON.refused]: 'was refused by EC2',
  [LOSS_REASON.unanswered]: 'got no answer from EC2',
  [LOSS_REASON.tokenUsed]: 'could not be found under its tags',
  [LOSS_REASON.poolDry]: 'was not launched: EC2 had refused its pool to others',
  [LOSS_REASON.notNeeded]: 'was not needed any more',
  [LOSS_REASON.banned]: 'makes room for another address: its own is banned',
  [LOSS_REASON.rotated]: 'makes room for a fresh address (aws.recycle_every)',
  [LOSS_REASON.neverHealthy]: 'never became healthy behind the balancer',
  [LOSS_REASON.sharedAddress]: 'has the address of another instance',
  [LOSS_REASON.unreadable]: 'uploaded unreadable results',
};

/** The lines in order of time. Moves that only follow from others (booting, uploading, terminated …) are left out. */
export function timelineOf(
  run: Pick<RunRecord, 'startedAtMs' | 'deadlineAtMs'>,
  events: readonly RunEvent[],
): TimelineEntry[] {
  const windowMs = run.deadlineAtMs - run.startedAtMs;
  const groupMs = Math.max(LEAST_GROUP_MS, windowMs * GROUP_SHARE);
  const repeatMs = Math.max(LEAST_GROUP_MS, windowMs * REPEAT_SHARE);
  const groups: { said: Said; atMs: number; lastMs: number; times: number; slots: number[] }[] = [];
  for (const event of [...events].sort((a, b) => a.atMs - b.atMs)) {
    const said = say(event);
    if (said === null) continue;
    const mayJoinMs = said.groups === 'slots' ? groupMs : said.groups === 'repeats' ? repeatMs : -1;
    const open = groups.findLast((g) => g.said.key === said.key && event.atMs - g.lastMs <= mayJoinMs);
    if (open) {
      open.lastMs = event.atMs;
      open.times++;
      if (event.slot !== null) open.slots.push(event.slot);
    } else
      groups.push({
        said,
        atMs: event.atMs,
        lastMs: event.atMs,
        times: 1,
        slots: event.slot === null ? [] : [event.slot],
      });
  }
  return groups.map(({ said, atMs, lastMs, times, slots }) => {
    if (said.groups === 'slots') return { atMs, text: `${namesOf(slots)} ${agreeing(said.text, new Set(slots).size)}` };
    if (times === 1) return { atMs, text: said.text };
    return { atMs, text: `${said.text}; and ${times - 1} more like it within ${formatDuration(lastMs - atMs)}` };
  });
}

const PLURALS: Readonly<Record<string, string>> = {
  is: 'are',
  runs: 'run',
  was: 'were',
  has: 'have',
  makes: 'make',
  stands: 'stand',
};

/** Puts the leading verb and the possessives of the text into the plural for several slots. */
const agreeing = (text: string, slots: number): string =>
  slots === 1
    ? text
    : text
        .replace(/^\w+/, (verb) => PLURALS[verb] ?? verb)
        .replace('its manifest is', 'their manifests are')
        .replace('its results', 'their results')
        .replace('its address', 'their addresses');

interface Said {
  /** Entries with the same key may become one line. */
  key: string;
  text: string;
  /** `slots`: the text is about a slot, and may apply to several. `repeats`: the same with other numbers is counted. */
  groups: 'slots' | 'repeats' | null;
}

function say(event: RunEvent): Said | null {
  const { kind, slot, epoch, from, to, detail } = event;
  if (kind === 'run') {
    const text = RUN_WORDS[to as RunPhase] ?? `the run is ${to}`;
    return { key: `run ${to}`, text: detail ? `${text} (${detail})` : text, groups: null };
  }
  if (kind === 'instance' && slot !== null) {
    const text = wordsOfMove(epoch ?? 1, from as InstancePhase | null, to as InstancePhase, detail);
    return text === null ? null : { key: `instance ${text}`, text, groups: 'slots' };
  }
  // Also as earlier versions recorded it.
  if (kind === INSTANCE_BUNDLE || kind === LAUNCH_BUNDLE || kind === 'launch-bundle') {
    const bundle = `bundle ${detail?.slice(0, 12)} (exec --update)`;
    const text = kind === INSTANCE_BUNDLE ? `runs ${bundle}` : `later launches get ${bundle}`;
    return { key: `${kind} ${detail}`, text, groups: slot === null ? null : 'slots' };
  }
  // An alarm repeats it.
  if (kind === 'forecast' || detail === null) return null;
  if (kind === 'alarm') return { key: `${kind} ${detail}`, text: `! ${detail}`, groups: null };
  return { key: `${kind} ${detail.replaceAll(/\d+/g, '#')}`, text: detail, groups: 'repeats' };
}

function wordsOfMove(
  epoch: number,
  from: InstancePhase | null,
  to: InstancePhase,
  detail: string | null,
): string | null {
  switch (to) {
    case 'claimed':
      return epoch === 1 ? 'claimed: EC2 is asked for an instance' : `claimed again (epoch ${epoch}): a replacement`;
    case 'ready':
      return from === 'banned' ? 'is served again' : 'said hello';
    case 'crawling':
      return from === 'banned' ? 'is served again' : null;
    case 'banned':
      return `stands still: the site refuses its address${detail ? ` (${detail})` : ''}`;
    case 'lost': {
      const [reason = '', ...rest] = (detail ?? '').split(': ');
      const more = rest.length > 0 ? ` (${rest.join(': ')})` : '';
      return `${LOSS_WORDS[reason] ?? `was given up: ${reason || 'no reason noted'}`}${more}`;
    }
    case 'done':
      return detail === LOSS_REASON.rotated
        ? `${LOSS_WORDS[LOSS_REASON.rotated]}: its manifest is checked`
        : 'is done: its manifest is checked';
    case 'pending':
    case 'booting':
    case 'uploading':
    case 'terminating':
    case 'terminated':
      return null;
  }
}

/** `slot 3`, `slots 0-4, 7`: each once, in order. */
function namesOf(slots: readonly number[]): string {
  const ordered = [...new Set(slots)].sort((a, b) => a - b);
  const ranges: string[] = [];
  for (let i = 0; i < ordered.length;) {
    let end = i;
    while (ordered[end + 1] === ordered[end]! + 1) end++;
    ranges.push(end === i ? String(ordered[i]) : `${ordered[i]}-${ordered[end]}`);
    i = end + 1;
  }
  return `${ordered.length === 1 ? 'slot' : 'slots'} ${ranges.join(', ')}`;
}
