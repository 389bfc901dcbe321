/** Daemons on a virtual clock: who starts what when, and what the record says about the rest. */
import { describe, expect, it } from 'vitest';
import { createTimetable } from '../../../../orchestrator/core/config/timetable.ts';
import { HOUR, MINUTE, Stage } from './stage.ts';

describe('the schedule', () => {
  it('starts a run at each due time, and says how it ended', async () => {
    await using stage = new Stage();
    stage.courses = [{}, { exitCode: 15 }];
    const daemon = stage.daemon();
    await stage.at('2026-11-22T02:10:00Z');
    const running = { kind: 'slot', due: '2026-11-22T02:00:00.000Z', run: 'run-2' };
    expect(daemon.scheduler.health()).toMatchObject({ ok: true, role: 'leading', running });
    await stage.at('2026-11-22T12:00:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 15']);
    expect(stage.runs.map((run) => new Date(run.startedAtMs).toISOString())).toEqual([
      '2026-11-21T02:00:01.000Z',
      '2026-11-22T02:00:01.000Z',
    ]);
    // By their main servers, not by the daemon.
    expect(stage.told).toEqual(['ended', 'ended']);
    expect(daemon.scheduler.health()).toEqual({
      ok: true,
      problem: null,
      role: 'leading',
      next: '2026-11-23T02:00:00.000Z',
      running: null,
      last: { due: '2026-11-22T02:00:00.000Z', state: 'done', exitCode: 15, run: 'run-2' },
    });
  });

  it.each([
    ['with an error', 16, 'exit code 16: infeasible'],
    ['without a word', 'crashed', 'exit code 4: ended with 4 before a run began'],
  ] as const)('reports a process that ended before a run began, %s', async (_what, refused, problem) => {
    await using stage = new Stage();
    stage.courses = [{ refused }];
    const daemon = stage.daemon();
    await stage.at('2026-11-21T12:00:00Z');
    expect(await stage.record()).toEqual([`11-21T02:00 done ${refused === 'crashed' ? 4 : 16}`]);
    expect(daemon.scheduler.health()).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
    expect(stage.told).toEqual(['done']);
  });

  it.each([
    ['Europe/Berlin', '2026-03-27T12:00:00Z', ['03-28T01:30', '03-29T01:00', '03-30T00:30']],
    ['America/New_York', '2026-10-30T12:00:00Z', ['10-31T06:30', '11-01T07:30', '11-02T07:30']],
    ['Asia/Tokyo', '2028-02-27T12:00:00Z', ['02-27T17:30', '02-28T17:30', '02-29T17:30']],
  ])('F53 runs once a day when the clocks change: %s from %s', async (timezone, start, due) => {
    await using stage = new Stage({ start, timezone, cron: '30 2 * * *' });
    stage.daemon({ pollMs: HOUR });
    await stage.clock.advance(73 * HOUR);
    expect((await stage.record()).slice(0, 3)).toEqual(due.map((time) => `${time} done 0`));
  });

  it('starts nothing for the times before it was there for the first time', async () => {
    await using stage = new Stage({ start: '2026-11-21T02:10:00Z' });
    stage.daemon();
    await stage.at('2026-11-21T12:00:00Z');
    expect(await stage.record()).toEqual([]);
  });
});

describe('F53 due while a run is at work', () => {
  it('is skipped, and told so', async () => {
    await using stage = new Stage({ cron: '0 * * * *' });
    stage.courses = [{ lastsMs: 2.5 * HOUR }];
    stage.daemon();
    await stage.at('2026-11-20T16:30:00Z');
    const skipped = ['11-20T14:00 skipped', '11-20T15:00 skipped'];
    expect(await stage.record()).toEqual(['11-20T13:00 done 0', ...skipped, '11-20T16:00 started']);
    expect((await stage.row('2026-11-20T14:00:00Z'))!.reason).toContain('2026-11-20T13:00');
    expect(stage.told).toEqual(['skipped', 'skipped', 'ended']);
  });

  it('waits with `queue`: one at most, and begins when the other has ended', async () => {
    await using stage = new Stage({ cron: '0 * * * *', ifRunning: 'queue' });
    stage.courses = [{ lastsMs: 2.5 * HOUR }, { lastsMs: 10 * MINUTE }];
    stage.daemon();
    await stage.at('2026-11-20T15:50:00Z');
    expect(await stage.record()).toEqual(['11-20T13:00 done 0', '11-20T14:00 done 0', '11-20T15:00 skipped']);
    expect(stage.runs[1]!.startedAtMs - Date.parse('2026-11-20T15:30:00Z')).toBeLessThan(MINUTE);
  });

  it('waits as long as it takes for the daemon that let it wait, but is not started days later by another one', async () => {
    for (const [hours, dies, became] of [
      [3.5, false, 'done 0'],
      [2, true, 'missed'],
    ] as const) {
      await using stage = new Stage({ start: '2026-11-02T01:00:00Z', cron: '0 2,3 2 * *', ifRunning: 'queue' });
      stage.courses = [{ lastsMs: hours * HOUR }];
      const first = stage.daemon();
      await stage.at('2026-11-02T03:30:00Z');
      expect(await stage.record()).toEqual(['11-02T02:00 started', '11-02T03:00 queued']);
      if (dies) {
        first.kill();
        stage.killProcesses();
        await stage.at('2026-11-05T12:30:00Z');
      }
      if (dies) stage.daemon();
      await stage.clock.advance(6 * HOUR);
      expect(await stage.record()).toEqual(['11-02T02:00 done 0', `11-02T03:00 ${became}`]);
    }
  });

  it('is skipped for a run by hand, and for an unfinished one of another schedule, which it does not take up', async () => {
    await using stage = new Stage({ cron: '0 * * * *' });
    stage.foreign = { owner: 'other:1:1', runId: 'by-hand' };
    stage.daemon();
    await stage.at('2026-11-20T13:30:00Z');
    stage.foreign = null;
    const foreign = stage.addRun({ id: 'foreign', ours: false });
    await stage.at('2026-11-20T14:30:00Z');
    // Its daemon has ended it.
    stage.runs.splice(stage.runs.indexOf(foreign), 1);
    await stage.at('2026-11-20T15:30:00Z');
    expect(stage.resumed).toEqual([]);
    expect(await stage.record()).toEqual(['11-20T13:00 skipped', '11-20T14:00 skipped', '11-20T15:00 started']);
  });
});

describe('F53 missed is not skipped', () => {
  it.each([
    ['young enough: it is made up for', HOUR, '2026-11-23T02:20:00Z', 'done 0'],
    ['older', HOUR, '2026-11-23T03:01:00Z', 'missed'],
    ['late, with 0s', 0, '2026-11-23T02:02:00Z', 'missed'],
    ['a minute late, with 0s: on time', 0, '2026-11-23T02:01:00Z', 'done 0'],
  ])('is what no daemon was running for; the newest one is %s', async (_what, catchUpMs, back, became) => {
    await using stage = new Stage({ catchUpMs });
    await stage.daemon().stop();
    await stage.at(back);
    stage.daemon();
    await stage.clock.advance(2 * HOUR);
    expect(await stage.record()).toEqual(['11-21T02:00 missed', '11-22T02:00 missed', `11-23T02:00 ${became}`]);
    expect(stage.alarms).toEqual([expect.stringContaining(`missed ${became === 'missed' ? 3 : 2} due times`)]);
    expect(stage.told.slice(0, 2)).toEqual(['missed', 'missed']);
  });

  it('does not count due times of another expression', async () => {
    await using stage = new Stage();
    await stage.daemon().stop();
    await stage.at('2026-11-21T08:30:00Z');
    stage.daemon({ timetable: createTimetable('0 * * * *', 'UTC') });
    await stage.clock.advance(MINUTE);
    expect(await stage.record()).toEqual([]);
  });

  it('after hours of sleep: told, and the young one made up for', async () => {
    await using stage = new Stage({ cron: '0 * * * *' });
    stage.daemon();
    await stage.at('2026-11-20T12:30:00Z');
    stage.skewMs += 3 * HOUR;
    await stage.clock.advance(10 * MINUTE);
    expect(await stage.record()).toEqual(['11-20T13:00 missed', '11-20T14:00 missed', '11-20T15:00 started']);
  });

  it('writes no more than a hundred rows for a machine that has slept for weeks', async () => {
    await using stage = new Stage({ cron: '* * * * *', catchUpMs: 0 });
    stage.foreign = { owner: 'other:1:1', runId: null };
    stage.daemon();
    await stage.clock.advance(30_000);
    stage.skewMs += 30 * 24 * HOUR;
    await stage.clock.advance(MINUTE);
    expect((await stage.record()).length).toBeLessThanOrEqual(103);
  });
});

describe('F54 a clock that is set', () => {
  it.each([
    ['back over the due time', -5 * MINUTE],
    ['back by a second', -1_000],
    ['forward by some minutes', 5 * MINUTE],
  ])('%s starts no due time twice', async (_what, stepMs) => {
    await using stage = new Stage();
    stage.courses = [{ lastsMs: MINUTE }];
    stage.daemon();
    await stage.at('2026-11-21T02:02:00Z');
    stage.skewMs += stepMs;
    await stage.clock.advance(HOUR);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    expect(stage.runs).toHaveLength(1);
  });

  it.each([
    ['the same daemon', false],
    ['the next one', true],
  ])(
    'wrong by days and set right again: %s runs the due times that it jumped over when they come',
    async (_, stops) => {
      await using stage = new Stage({ catchUpMs: 0 });
      const first = stage.daemon();
      await stage.clock.advance(MINUTE);
      stage.skewMs = 100 * HOUR;
      await stage.clock.advance(MINUTE);
      expect(stage.told).toContain('missed');
      if (stops) await first.stop();
      stage.skewMs = 0;
      if (stops) stage.daemon();
      await stage.at('2026-11-22T12:00:00Z');
      expect(await stage.record()).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 0']);
    },
  );
});
