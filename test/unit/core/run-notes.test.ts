import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { note, notedKeys } from '../../../orchestrator/core/act/run-notes.ts';
import type { Core } from '../../../orchestrator/core/model/core.ts';
import type { RunRow } from '../../../orchestrator/core/model/stores.ts';
import { aCore } from './fake-core.ts';

const event = { atMs: 1, slot: 0, epoch: 1, from: null, detail: null };

describe('the notes of a run', () => {
  it('are known to the next main server, however many events have followed', async () => {
    const known = [
      { ...event, kind: 'forecast', to: 'late' },
      { ...event, kind: 'decision', to: 'slot 7' },
      ...Array.from({ length: 20_000 }, () => ({ ...event, kind: 'instance', to: 'terminated' })),
    ];
    const events: RunRow['events'] = async (limit, kind) =>
      known
        .filter((e) => kind === undefined || e.kind === kind)
        .slice(-limit)
        .reverse();
    const keys = await notedKeys(aCore({ run: { events } as RunRow }));
    expect(keys.toSorted()).toEqual(['late', 'slot 7']);
  });
});

describe('a note', () => {
  it.each([
    [false, ['logged']],
    [true, ['alarm']],
  ])('is reported once, in the log or as an alarm (alarm: %s)', async (isAlarm, expected) => {
    const said: string[] = [];
    const core = aCore({
      clock: new VirtualClock(0),
      run: { addEvent: () => Promise.resolve() } as unknown as RunRow,
      log: { info: () => said.push('logged') } as unknown as Core['log'],
      alarm: () => Promise.resolve(void said.push('alarm')),
    });
    const world = { notedKeys: new Set<string>() };
    const late = { key: 'late', event: 'forecast', detail: 'the run is late' } as const;
    expect(await note(core, world, late, isAlarm)).toBe(true);
    expect(await note(core, world, late, isAlarm)).toBe(false);
    expect(said).toEqual(expected);
  });
});
