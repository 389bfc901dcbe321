import { describe, expect, it } from 'vitest';
import { renderProgress } from '../../../orchestrator/cli/progress.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import { aRun, aWorld, anInstance } from '../control/builders.ts';

const crawling = (pending: number) =>
  anInstance(0, { phase: 'crawling', progress: { ...NO_PROGRESS, assigned: 20, pending, stored: 20 - pending } });

describe('the progress line', () => {
  it('counts no product twice when another instance crawls those of a lost one again', () => {
    const shown = (stored: number) => ({
      ...anInstance(0).progress!,
      stored,
      gone: 0,
      failed: 1,
    });
    const world = aWorld({
      run: aRun({ planned: 150 }),
      instances: [
        anInstance(0, { epoch: 1, phase: 'lost', progress: shown(66) }),
        anInstance(0, { epoch: 2, progress: shown(99) }),
      ],
    });
    expect(renderProgress(world)).toMatch(/ 150\/150 {2}148 stored {2}2 failed /);
  });

  it('has no estimate while nothing is granted', () => {
    expect(renderProgress(aWorld({}))).not.toContain('ETA');
    expect(renderProgress(aWorld({ instances: [crawling(10)] }))).toContain('ETA');
  });

  it('has no estimate when the rest waits for something other than the crawl', () => {
    expect(renderProgress(aWorld({ instances: [crawling(0)] }))).not.toContain('ETA');
  });

  it('says how far past the deadline it is', () => {
    const run = aRun();
    const at = (ms: number): string => renderProgress(aWorld({ run, nowMs: run.deadlineAtMs + ms }));
    expect(at(-60_000)).toContain('1m to deadline');
    expect(at(120_000)).toContain('2m past the deadline');
  });
});
