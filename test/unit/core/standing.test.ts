import { describe, expect, it } from 'vitest';
import type { RunReport } from '../../../orchestrator/core/model/report.ts';
import { renderProgress } from '../../../orchestrator/cli/progress.ts';
import { tailMs } from '../../../orchestrator/core/model/run-deadlines.ts';
import { forecastEnd } from '../../../orchestrator/core/decide/shares/end-forecast.ts';
import { standingOf } from '../../../orchestrator/core/decide/shares/standing.ts';
import { isLate, standingInWords } from '../../../shared/domain/standing.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { aRun, aWorld, anInstance } from './builders.ts';

const crawling = (pending: number) =>
  anInstance(0, { phase: 'crawling', progress: { ...NO_PROGRESS, assigned: pending + 10, pending, stored: 10 } });

describe('how a run stands against its deadline', () => {
  it('is by the median forecast and the time for publishing, and the terminal says the same', () => {
    for (const pending of [20, 5_000]) {
      const world = aWorld({ instances: [crawling(pending)], work: { chunks: 0, waiting: 0, granted: 0, bySlot: [] } });
      const { run } = world;
      const standing = standingOf(world)!;
      const endMs = forecastEnd(world).p50Ms! + tailMs(run.deadlineAtMs - run.startedAtMs);
      expect(standing).toEqual({ end: new Date(endMs).toISOString(), lateMs: endMs - run.deadlineAtMs, uncrawled: 0 });
      expect(standing.lateMs > 0).toBe(pending === 5_000);
      expect(renderProgress(world)).toContain(standingInWords(standing));
    }
  });

  it('does not depend on what only the main server knows', () => {
    const world = aWorld({ instances: [crawling(20)] });
    expect(standingOf({ ...world, run: { ...world.run, measuredTailMs: 600_000 } })).toEqual(standingOf(world));
  });

  it('is by its end once there is one', () => {
    const run = aRun({ phase: 'completed' });
    const at = (ms: number) => standingOf(aWorld({ run: { ...run, finishedAtMs: run.deadlineAtMs + ms } }))!;
    expect(standingInWords(at(90_000))).toBe('1m 30s late');
    expect(standingInWords(at(-90_000))).toBe('1m 30s to spare');
    expect(standingInWords(at(0))).toBe('0ms to spare');
  });

  it('is no time to spare when products were not crawled in time', () => {
    const report = { products: { reasons: { deadline: 454, parse: 2 } } } as unknown as RunReport;
    const run = aRun({ phase: 'completed', report });
    const standing = standingOf(aWorld({ run: { ...run, finishedAtMs: run.deadlineAtMs - 1_900 } }))!;
    expect(standingInWords(standing)).toBe('454 products not crawled in time');
    expect(isLate(standing)).toBe(true);
  });

  it('is unknown before the first grant, and while nothing that is left can be crawled', () => {
    expect(standingOf(aWorld({}))).toBeNull();
    expect(standingOf(aWorld({ instances: [crawling(0)] }))).toBeNull();
    expect(standingOf(aWorld({ run: aRun({ phase: 'loading' }), instances: [crawling(20)] }))).toBeNull();
  });
});
