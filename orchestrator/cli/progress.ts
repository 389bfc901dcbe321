/** Progress of a run: a line that is rewritten on a terminal, else a line now and then. */
import { formatDuration } from '../../shared/domain/quantity.ts';
import { limitsOf } from '../control/model/run-deadlines.ts';
import { forecastEnd } from '../control/sharing/end-forecast.ts';
import type { InstanceRecord } from '../control/model/stores.ts';
import type { World } from '../control/model/world.ts';
import { openIncident } from '../control/decide/ban-policy.ts';
import { isGivenUp } from '../control/model/instance-state.ts';

/** The inputs of a progress line: all of them are in the database. */
export type ProgressFacts = Pick<World, 'nowMs' | 'run' | 'fleet' | 'work' | 'robots'>;

interface ProgressView {
  done: number;
  stored: number;
  gone: number;
  failed: number;
  ratePerSecond: number | null;
  minGapMs: number | null;
  etaMs: number | null;
  /** Addresses with an open incident. */
  banned: number;
  suspect: number;
}

/** Sums over the instances' own counters: fresher than the loaded results. */
function viewOf(world: ProgressFacts): ProgressView {
  const sum = { stored: 0, gone: 0, failed: 0 };
  let minGapMs: number | null = null;
  let firstMs: number | null = null;
  for (const record of world.fleet.all) {
    if (!record.progress) continue;
    sum.stored += record.progress.stored;
    sum.gone += record.progress.gone;
    sum.failed += record.progress.failed;
    if (record.progress.minGapMs !== null) minGapMs = Math.min(minGapMs ?? Infinity, record.progress.minGapMs);
    if (record.progress.requests > 0) firstMs = Math.min(firstMs ?? Infinity, record.claimedAtMs);
  }
  // Products that a lost instance crawled but did not upload are crawled, and counted, again: the sum is capped.
  const done = Math.min(sum.stored + sum.gone + sum.failed, world.run.planned);
  sum.stored = Math.min(sum.stored, Math.max(0, world.run.planned - sum.gone - sum.failed));
  const incidents = [...world.fleet.latest.values()].filter((r) => !isGivenUp(r)).map(openIncident);
  const addresses = {
    banned: incidents.filter((t) => t?.verdict === 'banned').length,
    suspect: incidents.filter((t) => t?.verdict === 'suspect').length,
  };
  const rate = firstMs !== null && world.nowMs > firstMs ? (done * 1_000) / (world.nowMs - firstMs) : null;
  const endMs = forecastEnd({ ...world, limits: limitsOf(world.run) }).p50Ms;
  return {
    done,
    ...sum,
    ratePerSecond: rate,
    minGapMs,
    // Before the first grant, and once nothing is left to crawl, there is no basis for an estimate.
    etaMs: !isCrawled(world) || endMs === null || endMs <= world.nowMs ? null : endMs - world.nowMs,
    ...addresses,
  };
}

/** Some instance has products to crawl. */
const isCrawled = ({ fleet }: ProgressFacts): boolean =>
  fleet.all.some((r) => !isGivenUp(r) && (r.progress?.pending ?? 0) > 0);

export function renderProgress(world: ProgressFacts): string {
  const view = viewOf(world);
  const counts = countPhases(world.fleet.all);
  const leftMs = world.run.deadlineAtMs - world.nowMs;
  const parts = [
    world.run.phase.padEnd(9),
    `${view.done}/${world.run.planned}`,
    `${view.stored} stored`,
    ...(view.gone > 0 ? [`${view.gone} gone`] : []),
    ...(view.failed > 0 ? [`${view.failed} failed`] : []),
    ...(view.banned > 0 ? [`${view.banned} BANNED`] : []),
    ...(view.suspect > 0 ? [`${view.suspect} suspect`] : []),
    ...(world.robots?.access === 'none' ? ['WAITING for robots.txt'] : []),
    ...(view.minGapMs === null ? [] : [`gap >= ${Math.floor(view.minGapMs)}ms`]),
    ...(world.run.phase === 'crawling' && view.etaMs !== null ? [`ETA ${formatDuration(view.etaMs)}`] : []),
    leftMs >= 0 ? `${formatDuration(leftMs)} to deadline` : `${formatDuration(-leftMs)} past the deadline`,
    counts,
  ];
  return parts.join('  ');
}

function countPhases(instances: readonly InstanceRecord[]): string {
  const counts = new Map<string, number>();
  for (const { phase } of instances) counts.set(phase, (counts.get(phase) ?? 0) + 1);
  return [...counts].map(([phase, n]) => `${n} ${phase}`).join(', ');
}

/**
 * Writes progress to the stream: in place on a terminal, else when the phase changes and once every `quietMs`. `end`
 * removes the line from the terminal.
 */
export function createProgressPrinter(
  stream: NodeJS.WriteStream,
  quietMs: number,
): { show(world: ProgressFacts): void; end(): void } {
  let lastMs = -Infinity;
  let lastPhase = '';
  const tty = stream.isTTY;
  return {
    show(world) {
      const due = world.run.phase !== lastPhase || world.nowMs - lastMs >= (tty ? 200 : quietMs);
      if (!due) return;
      lastMs = world.nowMs;
      lastPhase = world.run.phase;
      const text = renderProgress(world);
      stream.write(tty ? `\r\u001b[K${text.slice(0, Math.max(20, (stream.columns || 80) - 1))}` : `${text}\n`);
    },
    end() {
      if (tty) stream.write('\r\u001b[K');
    },
  };
}
