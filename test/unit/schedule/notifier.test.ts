/** Who is told what how often, by a receiver that takes notices or does not. */
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Slot, SlotState } from '../../../orchestrator/schedule/slots.ts';
import { createNotifier } from '../../../orchestrator/schedule/notifier.ts';

const DUE = Date.UTC(2026, 10, 22, 2);
const BLANK = { fence: 1, reason: null, runner: null, runId: null, startedAtMs: null, endedAtMs: null, told: false };
const slot = (state: SlotState): Slot => ({ ...BLANK, dueAtMs: DUE, state, result: null });

function stage() {
  const clock = new VirtualClock(DUE);
  const [sent, marked]: [string[], string[]] = [[], []];
  const receiver = { takes: true };
  const webhook = {
    tell: (notice: { event: string }) => {
      sent.push(notice.event);
      return Promise.resolve(receiver.takes);
    },
  };
  const store = { markTold: (_due: number, state: string) => Promise.resolve(void marked.push(state)) };
  const tell = createNotifier(webhook, store, { name: 'x', timezone: 'UTC' }, clock);
  return { clock, sent, marked, receiver, tell };
}

describe('telling a decided due time', () => {
  it('happens once, however often the record offers it', async () => {
    const { tell, sent, marked, clock } = stage();
    for (let i = 0; i < 5; i++) {
      tell([slot('done')], 1);
      await clock.advance(60_000);
    }
    expect([sent, marked]).toEqual([['ended'], ['done']]);
  });

  it('happens again for a due time that was missed and has run after all', async () => {
    const { tell, sent, clock } = stage();
    tell([slot('missed')], 1);
    await clock.advance(1_000);
    tell([slot('done')], 1);
    await clock.advance(1_000);
    expect(sent).toEqual(['missed', 'ended']);
  });

  it('is tried again by the same daemon when it was given up, less and less often, until it is taken', async () => {
    const { tell, sent, marked, receiver, clock } = stage();
    receiver.takes = false;
    for (let minute = 0; minute < 16; minute++) {
      tell([slot('done')], 1);
      await clock.advance(60_000);
    }
    expect(sent).toHaveLength(3);
    receiver.takes = true;
    await clock.advance(3_600_000);
    for (let i = 0; i < 3; i++) {
      tell([slot('done')], 1);
      await clock.advance(60_000);
    }
    expect([sent.length, marked]).toEqual([4, ['done']]);
  });
});
