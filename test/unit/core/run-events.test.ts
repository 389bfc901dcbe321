import { describe, expect, it } from 'vitest';
import {
  emit,
  type EventPlace,
  type RunEvents,
  type WatchedRun,
  watchersOf,
} from '../../../orchestrator/core/run-events.ts';
import { aWorld } from './builders.ts';

const PLACE = {} as EventPlace;
const told = (listeners: RunEvents[]) => [{}, ...listeners.map((runEvents) => ({ runEvents }))];
const REFUSED = { config: PLACE.config, dryRun: true };

describe('an event of a run', () => {
  it('reaches every listener, and what one returns or throws is a line', async () => {
    const listeners: RunEvents[] = [
      { refused: () => Promise.reject(new Error('no way out')) },
      {},
      { refused: async (error) => [`heard of ${String(error)}`] },
      {
        refused() {
          throw new Error('broken');
        },
      },
    ];
    expect(await emit(told(listeners), (events) => events.refused?.('a fault', REFUSED))).toEqual([
      'no way out',
      'heard of a fault',
      'broken',
    ]);
  });
});

describe('the watchers of a run', () => {
  const logged: string[] = [];
  const run = { runId: 'r1', table: 't', log: { warn: (text: string) => logged.push(text) } } as unknown as WatchedRun;

  it('see every world, and a broken one keeps it from no other', async () => {
    const seen: string[] = [];
    const listeners: RunEvents[] = [
      {
        watch: () => ({
          note() {
            throw new Error('no room');
          },
          end: () => Promise.reject(new Error('no end')),
        }),
      },
      { watch: (_place, { runId }) => ({ note: () => seen.push(runId), end: async () => void seen.push('end') }) },
      {},
    ];
    const watchers = watchersOf(told(listeners), PLACE, run);
    watchers.note(aWorld());
    await watchers.end();
    expect(seen).toEqual(['r1', 'end']);
    expect(logged).toEqual(['no room']);
  });
});
