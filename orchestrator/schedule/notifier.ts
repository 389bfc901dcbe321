/** Which decided due times are told now, and when one that could not be told is tried again. */
import type { Clock } from '../../shared/ports/clock.ts';
import type { Named } from './notice.ts';
import { noticeOf } from './notice.ts';
import type { Notifier } from './ports.ts';
import type { ScheduleStore, Slot } from './slots.ts';

const FIRST_PAUSE_MS = 300_000;
const MAX_PAUSE_MS = 3_600_000;

/**
 * Each decision is told once. What the receiver did not take is tried again after five minutes, then less and less often, as long as
 * the record gives it (a day), by this daemon or the next one.
 */
export function createNotifier(
  webhook: Notifier,
  store: Pick<ScheduleStore, 'markTold'>,
  named: Named,
  clock: Pick<Clock, 'monotonic'>,
): (slots: Slot[], fence: number) => void {
  // By state too: a due time that was missed under a wrong clock may have a run after all.
  const keyOf = ({ dueAtMs, state }: Slot): string => `${dueAtMs} ${state}`;
  const begun = new Map<string, { failures: number; againMs: number }>();
  const tell = async (slots: Slot[], fence: number): Promise<void> => {
    if (!(await webhook.tell(noticeOf(slots, named)))) {
      for (const key of slots.map(keyOf)) {
        const failures = (begun.get(key)?.failures ?? 0) + 1;
        const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
        begun.set(key, { failures, againMs: clock.monotonic() + pauseMs });
      }
      return;
    }
    for (const { dueAtMs, state } of slots) await store.markTold(dueAtMs, state, fence);
  };
  return (slots, fence) => {
    const fresh = slots.filter((slot) => clock.monotonic() >= (begun.get(keyOf(slot))?.againMs ?? -Infinity));
    for (const key of fresh.map(keyOf)) begun.set(key, { failures: begun.get(key)?.failures ?? 0, againMs: Infinity });
    // A night of sleep is one message, not a hundred.
    const missed = fresh.filter((slot) => slot.state === 'missed');
    const others = fresh.filter((slot) => slot.state !== 'missed');
    for (const group of [...(missed.length > 0 ? [missed] : []), ...others.map((slot) => [slot])])
      // Not marked as told: then it is told twice rather than never.
      void tell(group, fence).catch(() => undefined);
  };
}
