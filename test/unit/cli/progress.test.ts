import { describe, expect, it } from 'vitest';
import { renderProgress } from '../../../orchestrator/cli/progress.ts';
import { aRun, aWorld, anInstance } from '../control/builders.ts';

describe('the line of progress', () => {
  it('counts no more products than there are, when a lost instance had crawled what another one crawls again', () => {
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
});
