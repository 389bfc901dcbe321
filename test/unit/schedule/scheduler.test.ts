/** The daemon on a virtual clock: who starts what when, and what the record says about the rest. */
import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, Stage } from './stage.ts';

const at = (stage: Stage, iso: string): Promise<void> => stage.clock.advance(Date.parse(iso) - stage.clock.now());

describe('the schedule', () => {
  it('starts a run at each due time, and says how it ended', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    stage.courses = [{}, { exitCode: 15 }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-22T12:00:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 15']);
    expect(stage.runs.map((run) => new Date(run.startedAtMs).toISOString())).toEqual([
      '2026-11-21T02:00:01.000Z',
      '2026-11-22T02:00:01.000Z',
    ]);
    expect(stage.told).toEqual(['done', 'done']);
    expect(daemon.scheduler.health()).toMatchObject({
      ok: true,
      role: 'leading',
      next: '2026-11-23T02:00:00.000Z',
      running: null,
      last: { due: '2026-11-22T02:00:00.000Z', state: 'done', exitCode: 15, run: 'run-2' },
    });
    await daemon.stop();
  });

  it('writes down a run that ended before it began, and is not well then', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    stage.courses = [{ refused: true }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T12:00:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 done 16']);
    expect(daemon.scheduler.health()).toMatchObject({ ok: false, problem: expect.stringContaining('exit code 16') });
    await daemon.stop();
  });

  it.each([
    ['Europe/Berlin', '2026-03-27T12:00:00Z', ['03-28T01:30', '03-29T01:00', '03-30T00:30']],
    ['Europe/Berlin', '2026-10-23T12:00:00Z', ['10-24T00:30', '10-25T00:30', '10-26T01:30']],
    ['America/New_York', '2026-03-06T12:00:00Z', ['03-07T07:30', '03-08T07:00', '03-09T06:30']],
    ['America/New_York', '2026-10-30T12:00:00Z', ['10-31T06:30', '11-01T07:30', '11-02T07:30']],
    ['Asia/Tokyo', '2026-03-27T12:00:00Z', ['03-27T17:30', '03-28T17:30', '03-29T17:30']],
    ['Asia/Tokyo', '2028-02-27T12:00:00Z', ['02-27T17:30', '02-28T17:30', '02-29T17:30']],
  ])('F53 runs once a day when the clocks change: %s from %s', async (timezone, start, due) => {
    const stage = new Stage({ start, timezone, cron: '30 2 * * *' });
    const daemon = stage.daemon();
    await stage.clock.advance(73 * HOUR);
    expect((await stage.record()).slice(0, 3)).toEqual(due.map((time) => `${time} done 0`));
    await daemon.stop();
  });

  it('starts nothing for the times before it was there for the first time', async () => {
    const stage = new Stage({ start: '2026-11-21T02:10:00Z' });
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T12:00:00Z');
    expect(await stage.record()).toEqual([]);
    await daemon.stop();
  });
});

describe('F53 due while a run is at work', () => {
  it('is skipped, and told so', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', cron: '0 * * * *', deadlineMs: 3 * HOUR });
    stage.courses = [{ lastsMs: 2.5 * HOUR }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-20T16:30:00Z');
    expect(await stage.record()).toEqual([
      '11-20T13:00 done 0',
      '11-20T14:00 skipped',
      '11-20T15:00 skipped',
      '11-20T16:00 started',
    ]);
    expect((await stage.store.get(Date.parse('2026-11-20T14:00:00Z')))!.reason).toContain('2026-11-20T13:00');
    expect(stage.told).toEqual(['skipped', 'skipped', 'done']);
    await daemon.stop();
  });

  it('waits with `queue`: one at most, and begins when the other has ended', async () => {
    const stage = new Stage({
      start: '2026-11-20T12:00:00Z',
      cron: '0 * * * *',
      ifRunning: 'queue',
      deadlineMs: 3 * HOUR,
    });
    stage.courses = [{ lastsMs: 2.5 * HOUR }, { lastsMs: 10 * MINUTE }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-20T15:50:00Z');
    expect(await stage.record()).toEqual(['11-20T13:00 done 0', '11-20T14:00 done 0', '11-20T15:00 skipped']);
    expect(stage.runs[1]!.startedAtMs - Date.parse('2026-11-20T15:30:00Z')).toBeLessThan(2 * MINUTE);
    await daemon.stop();
  });

  it('is skipped for a run that a person has started, and for one that nobody can resume yet', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', cron: '0 * * * *' });
    stage.foreign = { owner: 'other:1:1', runId: 'by-hand' };
    const daemon = stage.daemon();
    await at(stage, '2026-11-20T13:30:00Z');
    stage.foreign = null;
    await at(stage, '2026-11-20T14:30:00Z');
    expect(await stage.record()).toEqual(['11-20T13:00 skipped', '11-20T14:00 started']);
    await daemon.stop();
  });
});

describe('F53 missed is not skipped', () => {
  it('is what nobody was there for; the newest one is made up for when it is young enough', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    await stage.daemon().stop();
    await at(stage, '2026-11-23T02:20:00Z');
    const daemon = stage.daemon();
    await at(stage, '2026-11-23T04:00:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 missed', '11-22T02:00 missed', '11-23T02:00 done 0']);
    expect(stage.alarms).toEqual([expect.stringContaining('missed 2 due times')]);
    expect(stage.told).toEqual(['missed', 'missed', 'done']);
    await daemon.stop();
  });

  it('is not made up for when it is older, or never with 0s', async () => {
    for (const [catchUpMs, back] of [
      [HOUR, '2026-11-21T03:01:00Z'],
      [0, '2026-11-21T02:02:00Z'],
    ] as const) {
      const stage = new Stage({ start: '2026-11-20T12:00:00Z', catchUpMs });
      await stage.daemon().stop();
      await at(stage, back);
      const daemon = stage.daemon();
      await stage.clock.advance(HOUR);
      expect(await stage.record()).toEqual(['11-21T02:00 missed']);
      expect(stage.runs).toEqual([]);
      await daemon.stop();
    }
  });

  it('does not count due times of another expression', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    await stage.daemon().stop();
    await at(stage, '2026-11-20T20:30:00Z');
    const hourly = new Stage({ start: '2026-11-20T20:30:00Z', cron: '0 * * * *' });
    Object.assign(hourly, { store: stage.store });
    const daemon = hourly.daemon();
    await hourly.clock.advance(MINUTE);
    expect(await hourly.record()).toEqual([]);
    await daemon.stop();
  });

  it('after hours of sleep: told, and the young one made up for', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', cron: '0 * * * *' });
    stage.courses = [{ lastsMs: 5 * MINUTE }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-20T12:30:00Z');
    stage.sleep(3 * HOUR);
    await stage.clock.advance(10 * MINUTE);
    expect(await stage.record()).toEqual(['11-20T13:00 missed', '11-20T14:00 missed', '11-20T15:00 done 0']);
    await daemon.stop();
  });

  it('writes no more than a hundred rows for a machine that has slept for weeks', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', cron: '* * * * *', catchUpMs: 0 });
    stage.foreign = { owner: 'other:1:1', runId: null };
    const daemon = stage.daemon();
    await stage.clock.advance(30_000);
    stage.sleep(30 * 24 * HOUR);
    await stage.clock.advance(MINUTE);
    expect((await stage.record()).length).toBeLessThanOrEqual(101);
    await daemon.stop();
  });
});

describe('a clock that is set', () => {
  it.each([
    ['back over the due time', -5 * MINUTE],
    ['back by a second', -1_000],
    ['forward by some minutes', 5 * MINUTE],
  ])('%s starts no due time twice', async (_what, stepMs) => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    stage.courses = [{ lastsMs: MINUTE }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:02:00Z');
    stage.skewMs += stepMs;
    await stage.clock.advance(HOUR);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    expect(stage.runs).toHaveLength(1);
    await daemon.stop();
  });

  it('wrong by days and set right again: the due times that it jumped over are run when they come', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    const daemon = stage.daemon();
    await stage.clock.advance(MINUTE);
    stage.skewMs = 100 * HOUR;
    await stage.clock.advance(MINUTE);
    stage.skewMs = 0;
    await at(stage, '2026-11-22T12:00:00Z');
    expect((await stage.record()).slice(0, 2)).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 0']);
    await daemon.stop();
  });
});
