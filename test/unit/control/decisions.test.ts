import { describe, expect, it } from 'vitest';
import { notedKeys } from '../../../orchestrator/control/decisions.ts';
import type { RunStore } from '../../../orchestrator/control/stores.ts';
import { aCore } from './fake-core.ts';

const event = { atMs: 1, slot: 0, epoch: 1, from: null, detail: null };

describe('what a run has noted', () => {
  it('is known to the next main server, however much else has happened since', async () => {
    const known = [
      { ...event, kind: 'projection', to: 'late' },
      { ...event, kind: 'decision', to: 'slot 7' },
      ...Array.from({ length: 20_000 }, () => ({ ...event, kind: 'instance', to: 'terminated' })),
    ];
    const events: RunStore['events'] = async (_run, limit, kind) =>
      known
        .filter((e) => kind === undefined || e.kind === kind)
        .slice(-limit)
        .reverse();
    const keys = await notedKeys(aCore({ runs: { events } as RunStore }));
    expect(keys.toSorted()).toEqual(['late', 'slot 7']);
  });
});
