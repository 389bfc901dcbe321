/** Progress of a run: a block that is redrawn on a terminal, else a line now and then. */
import { adviceOf, nameOf, namesOf } from '../../shared/domain/reason-row.ts';
import { createLogUpdate } from 'log-update';
import { formatDuration } from '../../shared/domain/quantity.ts';
import { isLate, standingInWords } from '../../shared/domain/standing.ts';
import { oneLine, plain } from '../../shared/domain/terminal-text.ts';
import { liveCounts, reasonsOf } from '../core/read/run-documents.ts';
import { openIncident } from '../core/decide/ban-policy.ts';
import type { InstanceRecord } from '../core/model/stores.ts';
import type { World } from '../core/model/world.ts';
import { costOfRun } from '../core/decide/end/cost-of-run.ts';
import { standingOf } from '../core/decide/shares/standing.ts';
import { dollars } from '../core/plan/wording.ts';
import { type Paint, painter, type Tone } from './paint.ts';
import { writeText } from './terminal.ts';

/** The inputs of a progress display: all of them are in the database. */
export type ShownWorld = Pick<World, 'nowMs' | 'run' | 'fleet' | 'work' | 'robots'>;

interface Segment {
  text: string;
  tone: Tone;
}

/** What is worth knowing beside the phase and the bar, the most important first. */
function segmentsOf(world: ShownWorld): Segment[] {
  const { run, nowMs, fleet, robots } = world;
  const live = liveCounts(run, fleet.all, nowMs);
  const leftMs = run.deadlineAtMs - nowMs;
  const standing = standingOf(world);
  const intervalMs = run.settings.site.intervalMs;
  const segments: (Segment | null)[] = [
    { text: `${live.stored} stored`, tone: 'plain' },
    live.gone > 0 ? { text: `${live.gone} gone`, tone: 'plain' } : null,
    live.failed > 0 ? { text: `${live.failed} failed`, tone: 'late' } : null,
    live.waiting > 0 ? { text: `${live.waiting} waiting after a first try`, tone: 'late' } : null,
    live.banned > 0 ? { text: `${live.banned} BANNED`, tone: 'bad' } : null,
    live.suspect > 0 ? { text: `${live.suspect} suspect`, tone: 'late' } : null,
    robots?.access === 'none' ? { text: 'WAITING for robots.txt', tone: 'bad' } : null,
    run.phase === 'crawling' && live.perSecond !== null
      ? { text: `${live.perSecond.toFixed(live.perSecond < 10 ? 2 : 0)} pages/s`, tone: 'plain' }
      : null,
    live.minGapMs === null
      ? null
      : { text: `gap >= ${Math.floor(live.minGapMs)}ms`, tone: live.minGapMs < intervalMs ? 'bad' : 'good' },
    run.phase === 'crawling' && standing !== null
      ? {
          text: `ETA ${formatDuration(Date.parse(standing.end) - nowMs)}, ${standingInWords(standing)}`,
          tone: isLate(standing) ? 'bad' : 'good',
        }
      : null,
    leftMs >= 0
      ? { text: `${formatDuration(leftMs)} to deadline`, tone: 'plain' }
      : { text: `${formatDuration(-leftMs)} past the deadline`, tone: 'bad' },
    costSegment(world, live.stored),
  ];
  return segments.filter((segment) => segment !== null);
}

function costSegment({ run, fleet, nowMs }: ShownWorld, stored: number): Segment {
  const soFar = costOfRun(run, fleet.all, stored, nowMs).actual.total;
  const { maxCost } = run.settings.run;
  const cap = maxCost === null ? '' : ` of ${dollars(maxCost)}`;
  return { text: `${dollars(soFar)}${cap}`, tone: maxCost !== null && soFar > maxCost * 0.9 ? 'late' : 'plain' };
}

/** Everything in one line, for a log. */
export function renderProgress(world: ShownWorld): string {
  const { run, fleet, nowMs } = world;
  const { done } = liveCounts(run, fleet.all, nowMs);
  const parts = segmentsOf(world).map(({ text }) => text);
  const reasons = reasonsOf(run, fleet.all);
  const why = reasons.length === 0 ? [] : [`no row: ${plain(namesOf(reasons))}`];
  return [run.phase.padEnd(9), `${done}/${run.planned}`, ...parts, countPhases(fleet.all), ...why].join('  ');
}

function countPhases(instances: readonly InstanceRecord[]): string {
  const counts = new Map<string, number>();
  for (const { phase } of instances) counts.set(phase, (counts.get(phase) ?? 0) + 1);
  return [...counts].map(([phase, n]) => `${n} ${phase}`).join(', ');
}

export interface Screen {
  columns: number;
  rows: number;
  paint: Paint;
}

/** Part of the height that the block may take; the rest is for messages. */
const HEIGHT_SHARE = 0.6;
const LONGEST_BAR = 40;
/** Reasons shown, the most frequent ones. */
const MAX_REASONS = 3;

/** The block for a terminal: bar, figures, and a line for each instance, the worst first. No line is wider than it. */
export function renderScreen(world: ShownWorld, screen: Screen): string {
  const { run, fleet, nowMs } = world;
  const { done } = liveCounts(run, fleet.all, nowMs);
  const figures = [...bar(run.phase, done, run.planned, screen), ...wrap(segmentsOf(world), screen)];
  const height = Math.floor(screen.rows * HEIGHT_SHARE);
  const head = [...figures, ...reasonLines(world, screen).slice(0, Math.max(0, height - figures.length))];
  const room = Math.max(0, height - head.length);
  const instances = [...fleet.latest.values()].sort((a, b) => badness(b) - badness(a) || shareDone(a) - shareDone(b));
  const shown = instances.length <= room ? instances : instances.slice(0, Math.max(0, room - 1));
  const rest = instances.length - shown.length;
  const lines = shown.map((record) => instanceLine(record, screen));
  const more = rest > 0 && room > 0 ? [`  … and ${rest} more: ${countPhases(instances)}`.slice(0, screen.columns)] : [];
  return [...head, ...lines, ...more].join('\n');
}

/** Why products have no row, and what to do. */
function reasonLines({ run, fleet }: ShownWorld, { columns, paint }: Screen): string[] {
  return reasonsOf(run, fleet.all)
    .slice(0, MAX_REASONS)
    .map((row) => {
      const text = `  ${row.products + row.waiting} ${nameOf(row)}: ${adviceOf(row)}`;
      return paint('late', cut(text, columns));
    });
}

/** The text as it may be printed, and no wider. */
const cut = (text: string, columns: number): string => oneLine(text).slice(0, columns).toWellFormed();

function bar(phase: string, done: number, planned: number, { columns, paint }: Screen): string[] {
  const share = planned === 0 ? 1 : done / planned;
  const figures = ` ${Math.floor(share * 100)} %  ${done}/${planned}`;
  const length = Math.min(LONGEST_BAR, columns - phase.length - figures.length - 2);
  if (length < 5) return [`${phase}${figures}`.slice(0, columns)];
  const full = Math.floor(share * length);
  return [`${phase} ${paint('good', '█'.repeat(full))}${'░'.repeat(length - full)}${figures}`];
}

/** The segments in as few lines as they need. */
function wrap(segments: readonly Segment[], { columns, paint }: Screen): string[] {
  const lines: { width: number; parts: string[] }[] = [];
  for (const { text, tone } of segments) {
    const last = lines.at(-1);
    const part = tone === 'plain' ? text : paint(tone, text);
    if (last && last.width + 3 + text.length <= columns) {
      last.width += 3 + text.length;
      last.parts.push(part);
    } else lines.push({ width: text.length, parts: [part] });
  }
  return lines.map(({ parts }) => parts.join(' · '));
}

const doneOf = ({ progress }: InstanceRecord): number =>
  progress ? progress.stored + progress.gone + progress.failed : 0;
const shareDone = (record: InstanceRecord): number => doneOf(record) / Math.max(1, record.progress?.assigned ?? 0);

const badness = (record: InstanceRecord): number => ['plain', 'good', 'late', 'bad'].indexOf(toneOf(record).tone);

function toneOf(record: InstanceRecord): { tone: Tone; why: string } {
  const incident = openIncident(record);
  if (incident !== null)
    return { tone: incident.verdict === 'banned' ? 'bad' : 'late', why: `${incident.verdict} by ${incident.rule}` };
  if (record.problem !== null) return { tone: 'late', why: record.problem };
  if (record.phase === 'lost') return { tone: 'bad', why: record.reason ?? '' };
  return { tone: record.phase === 'crawling' ? 'good' : 'plain', why: record.reason ?? '' };
}

function instanceLine(record: InstanceRecord, { columns, paint }: Screen): string {
  const { slot, phase, progress } = record;
  const { tone, why } = toneOf(record);
  const gap = progress?.minGapMs == null ? '' : `${Math.floor(progress.minGapMs)}ms`;
  const done = `${doneOf(record)}/${progress?.assigned ?? 0}`;
  const [before, after] = [`  ${String(slot).padStart(4)} `, ` ${done.padStart(11)} ${gap.padStart(7)}  `];
  const state = phase.padEnd(11);
  const room = columns - before.length - state.length - after.length;
  return `${before}${paint(tone, state)}${after}${room > 3 ? cut(why, room) : ''}`.trimEnd();
}

export interface ProgressPrinter {
  show(world: ShownWorld): void;
  /** Writes something above the block. */
  above(write: () => void): void;
  end(): void;
}

const TERMINAL_PAUSE_MS = 200;
/** Shows progress on the stream: in place on a terminal, else when the phase changes and once every `quietMs`. */
export function createProgressPrinter(stream: NodeJS.WriteStream, quietMs: number): ProgressPrinter {
  let lastMs = -Infinity;
  let lastPhase = '';
  let shown = '';
  const block = stream.isTTY ? createLogUpdate(stream) : null;
  const paint = painter(stream);
  return {
    show(world) {
      const isDue = world.run.phase !== lastPhase || world.nowMs - lastMs >= (block ? TERMINAL_PAUSE_MS : quietMs);
      if (!isDue) return;
      lastMs = world.nowMs;
      lastPhase = world.run.phase;
      if (!block) return writeText(stream, renderProgress(world));
      // The last column is left free: some terminals wrap there.
      shown = renderScreen(world, { columns: (stream.columns || 80) - 1, rows: stream.rows || 24, paint });
      block(shown);
    },
    above(write) {
      block?.clear();
      write();
      if (shown !== '') block?.(shown);
    },
    end() {
      block?.clear();
      block?.done();
      shown = '';
    },
  };
}
