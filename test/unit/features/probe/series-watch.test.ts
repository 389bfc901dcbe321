/** What the worlds of a run say about its series. */
import { describe, expect, it } from 'vitest';
import type { InstanceRecord } from '../../../../orchestrator/core/model/stores.ts';
import { SeriesWatch } from '../../../../orchestrator/features/probe/series-watch.ts';
import { NO_PROGRESS, type Progress } from '../../../../shared/wire/callbacks.ts';
import { aClaim, anIncident, anInstance, aWorld, START_MS } from '../../core/builders.ts';

const SERIES = { intervalMs: 5_000, requests: 200, maxRequests: 300, measuresBan: true };
const MINUTE = 60_000;
const BAN_MS = START_MS + 10 * MINUTE;

/** The world at a time, with the last heartbeat of the instance at that time. */
function worldAt(nowMs: number, progress: Partial<Progress>, change: Partial<InstanceRecord> = {}) {
  const instance = anInstance(0, {
    progress: { ...NO_PROGRESS, ...progress },
    lastHeartbeatAtMs: nowMs,
    incident: null,
    ...change,
  });
  return aWorld({ nowMs, instances: [instance] });
}
const watchOf = (change: Partial<typeof SERIES> = {}) =>
  new SeriesWatch({ ...SERIES, ...change }, { maxBanMs: 60 * MINUTE });

describe('a series', () => {
  it('is over and complete after its requests, or when no product is left', () => {
    const watch = watchOf();
    expect(watch.note(worldAt(START_MS, { requests: 199 }))).toBe(false);
    expect(watch.result()).toMatchObject({ requests: 199, isComplete: false });
    expect(watch.note(worldAt(START_MS, { requests: 200 }))).toBe(true);
    expect(watch.result()).toMatchObject({ requests: 200, ban: null, isComplete: true });
    const few = watchOf();
    const { planned } = aWorld().run;
    expect(few.note(worldAt(START_MS, { requests: 3, stored: planned - 1, gone: 1 }))).toBe(true);
  });

  it('is over at the budget', () => {
    const watch = watchOf({ requests: 400 });
    expect(watch.note(worldAt(START_MS, { requests: 300 }))).toBe(true);
    expect(watch.result().isComplete).toBe(false);
  });

  it('has begun with the first request, whatever launches failed before', () => {
    const watch = watchOf();
    const failed = anInstance(0, { phase: 'terminated', reason: 'no-hello', progress: null });
    expect(watch.note(aWorld({ instances: [failed, aClaim(0, { epoch: 2 })] }))).toBe(false);
    expect(watch.result()).toMatchObject({ address: null, requests: 0, isComplete: false });
  });

  it('is over when its instance is lost: another address would hide what happens to this one', () => {
    const watch = watchOf();
    expect(watch.note(worldAt(START_MS, { requests: 20 }, { phase: 'lost' }))).toBe(true);
    expect(watch.result().isComplete).toBe(false);
  });
});

describe('a ban', () => {
  const incident = anIncident({ atMs: BAN_MS });
  /** Refused once, and once more for the canary page. */
  const banned = worldAt(BAN_MS, { requests: 62, okAgoMs: 10_200 }, { incident });

  it('counts the requests before the first refused one', () => {
    const watch = watchOf();
    expect(watch.note(banned)).toBe(false);
    expect(watch.result().ban).toEqual({ rule: 'status-403', afterRequests: 60, minMs: 0, maxMs: null });
  });

  it('counts none when no page was ever right', () => {
    const watch = watchOf();
    watch.note(worldAt(BAN_MS, { requests: 2, okAgoMs: null }, { incident }));
    expect(watch.result().ban).toMatchObject({ afterRequests: 0 });
  });

  it('lasts from its first refusal to its last one at least, and at most from the last right page to the next', () => {
    const watch = watchOf();
    watch.note(banned);
    const again = anIncident({ atMs: BAN_MS + 27 * MINUTE });
    watch.note(worldAt(BAN_MS + 27 * MINUTE, { requests: 80, okAgoMs: 27 * MINUTE + 10_200 }, { incident: again }));
    const over = { ...again, overAtMs: BAN_MS + 30 * MINUTE };
    expect(watch.note(worldAt(BAN_MS + 30 * MINUTE, { requests: 80, okAgoMs: 30 * MINUTE }, { incident: over }))).toBe(
      false,
    );
    expect(watch.note(worldAt(BAN_MS + 31 * MINUTE, { requests: 81, okAgoMs: 30_000 }, { incident: over }))).toBe(true);
    const { ban } = watch.result();
    expect(ban).toMatchObject({ afterRequests: 60, minMs: 27 * MINUTE, maxMs: 30.5 * MINUTE + 10_200 });
  });

  it('ends the series at once when its length is not measured, else at the limit', () => {
    expect(watchOf({ measuresBan: false }).note(banned)).toBe(true);
    const watch = watchOf();
    watch.note(banned);
    expect(watch.note(worldAt(BAN_MS + 61 * MINUTE, { requests: 100, okAgoMs: 61 * MINUTE }, { incident }))).toBe(true);
  });

  it('is a Retry-After too, for the time that it names', () => {
    const watch = watchOf();
    expect(watch.note(worldAt(BAN_MS, { requests: 41, okAgoMs: 5_100, restMs: 90_000 }))).toBe(true);
    expect(watch.result().ban).toEqual({ rule: 'retry-after', afterRequests: 40, minMs: 90_000, maxMs: 95_100 });
  });
});
