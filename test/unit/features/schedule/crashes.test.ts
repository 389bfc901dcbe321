/** What a reboot, a kill, a frozen daemon, a database that is down and a stuck run do to the schedule. */
import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, Stage } from './stage.ts';

const DUE = '2026-11-21T02:00:00Z';

describe('F41 a run that was interrupted', () => {
  it('by SIGTERM to the daemon is resumed by the next start, and its due time is done then', async () => {
    await using stage = new Stage();
    const first = stage.daemon();
    await stage.at('2026-11-21T02:30:00Z');
    await first.stop();
    expect(stage.atWork()).toBe(0);
    expect(await stage.row(DUE)).toMatchObject({ state: 'started', owner: null, runId: 'run-1' });
    stage.daemon();
    await stage.clock.advance(HOUR);
    expect(stage.resumed).toEqual(['run-1']);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    expect(stage.told).toEqual(['ended']);
  });

  it('by a reboot as well; the due time of meanwhile comes after it', async () => {
    await using stage = new Stage({ deadlineMs: HOUR });
    stage.courses = [{ lastsMs: 26 * HOUR }];
    const first = stage.daemon();
    await stage.at('2026-11-21T02:30:00Z');
    first.kill();
    stage.killProcesses();
    await stage.at('2026-11-22T01:58:00Z');
    stage.daemon();
    // Its deadline is long past: ending it is no reason to skip.
    await stage.at('2026-11-22T02:01:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 started', '11-22T02:00 queued']);
    stage.runs[0]!.endsAtMs = 0;
    stage.killProcesses();
    await stage.clock.advance(2 * HOUR);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 0']);
  });

  it('not at all, when only the daemon was killed: the next one watches it', async () => {
    await using stage = new Stage();
    const first = stage.daemon();
    await stage.at('2026-11-21T02:30:00Z');
    first.kill();
    const second = stage.daemon();
    await stage.clock.advance(MINUTE);
    expect(await stage.row(DUE)).toMatchObject({ owner: second.me });
    await stage.clock.advance(HOUR);
    expect(stage.resumed).toEqual([]);
    expect(stage.runs).toHaveLength(1);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
  });

  it('is left alone while a person resumes it', async () => {
    await using stage = new Stage();
    stage.daemon();
    await stage.at('2026-11-21T02:30:00Z');
    stage.foreign = { owner: 'here:77:1', runId: 'run-1' };
    stage.killProcesses();
    await stage.clock.advance(3 * HOUR);
    expect(stage.resumed).toEqual([]);
    stage.foreign = null;
    await stage.clock.advance(10 * MINUTE);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
  });

  it('by hand is taken up within a minute', async () => {
    await using stage = new Stage();
    stage.daemon();
    stage.addRun({ id: 'by-hand' });
    await stage.clock.advance(2 * MINUTE);
    expect(stage.resumed).toEqual(['by-hand']);
    await stage.clock.advance(HOUR);
    // One that its own main server carries to its end is left alone, also right after that.
    const other = stage.addRun();
    stage.foreign = { owner: 'here:77:1', runId: other.id };
    await stage.clock.advance(10 * MINUTE);
    other.result = { ...stage.runs[0]!.result! };
    stage.foreign = null;
    await stage.clock.advance(10 * MINUTE);
    expect(stage.resumed).toEqual(['by-hand']);
  });

  it('by hand is reported once when it cannot be resumed, and does not block the schedule', async () => {
    await using stage = new Stage();
    stage.daemon();
    stage.addRun({ id: 'by-hand' });
    stage.resumeFails = 100;
    await stage.at('2026-11-21T12:00:00Z');
    expect(stage.resumed).toHaveLength(8);
    expect(stage.alarms).toEqual([expect.stringContaining('run by-hand could not be resumed 8 times')]);
    expect(stage.told).toEqual(['stuck', 'ended']);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
  });

  it('is tried again when resuming fails, and given up in the end without blocking the schedule', async () => {
    await using stage = new Stage();
    stage.daemon();
    await stage.at('2026-11-21T02:30:00Z');
    stage.resumeFails = 3;
    stage.killProcesses();
    await stage.at('2026-11-21T06:00:00Z');
    expect(stage.resumed).toHaveLength(4);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    await stage.at('2026-11-22T02:30:00Z');
    stage.resumeFails = 8;
    stage.killProcesses();
    await stage.at('2026-11-23T12:00:00Z');
    expect(stage.resumed).toHaveLength(12);
    expect(stage.alarms).toEqual([expect.stringContaining('could not be resumed 8 times')]);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 1', '11-23T02:00 done 0']);
    // The daemon reports the run that never ended.
    expect(stage.told).toEqual(['ended', 'done', 'ended']);
  });
});

describe('F41 a due time whose process is ended before it has stored a run', () => {
  it.each([
    ['young: by the next daemon', HOUR, ['queued', 'done 0']],
    ['too old: it is missed', 0, ['missed', 'missed']],
  ])('with the daemon is carried out when it is %s', async (_what, catchUpMs, became) => {
    await using stage = new Stage({ start: '2026-11-21T01:00:00Z', catchUpMs });
    stage.courses = [{ preparesMs: 10 * MINUTE }];
    const first = stage.daemon();
    await stage.at('2026-11-21T02:02:00Z');
    await first.stop();
    expect(await stage.record()).toEqual([`11-21T02:00 ${became[0]}`]);
    stage.daemon();
    await stage.at('2026-11-21T05:00:00Z');
    expect(await stage.record()).toEqual([`11-21T02:00 ${became[1]}`]);
  });

  it('is started again by the same daemon, but not without end', async () => {
    await using stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    stage.courses = Array.from({ length: 50 }, () => ({ preparesMs: 10 * MINUTE }));
    stage.daemon();
    for (let minute = 0; minute < 240; minute++) {
      await stage.clock.advance(MINUTE);
      stage.killProcesses();
    }
    expect(stage.lines.filter((line) => line.includes('its run is started'))).toHaveLength(8);
    expect(await stage.record()).toEqual(['11-21T02:00 done']);
    expect(stage.runs).toEqual([]);
  });

  it('has no run, whatever run another schedule stores meanwhile', async () => {
    await using stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    stage.courses = [{ preparesMs: 10 * MINUTE }, { refused: 16 }];
    stage.daemon();
    await stage.at('2026-11-21T02:01:00Z');
    stage.addRun({ ours: false, deadlineAtMs: 0 });
    stage.killProcesses();
    await stage.at('2026-11-21T02:30:00Z');
    expect((await stage.row(DUE))!.result).toMatchObject({ run: null, exitCode: 16 });
  });
});

describe('F41 the hole between the row and the process', () => {
  const OTHER = '0 2 * * * UTC';

  it.each([
    ['here, dead', 'here:99:1', MINUTE],
    ['on another host that is silent', 'other:1:1', 7 * MINUTE],
  ])('a daemon %s, that wrote the row and started nothing, is replaced', async (_what, owner, withinMs) => {
    await using stage = new Stage({ start: '2026-11-21T01:59:00Z' });
    await stage.store.write(Date.parse(DUE), null, { state: 'next', reason: OTHER, owner });
    await stage.store.write(Date.parse(DUE), { state: 'next' }, { state: 'started', owner });
    const daemon = stage.daemon();
    await stage.clock.advance(withinMs);
    expect(stage.runs).toHaveLength(1);
    expect(await stage.row(DUE)).toMatchObject({ state: 'started', owner: daemon.me, runId: 'run-1' });
  });

  it('a daemon that freezes before it starts the process starts nothing when it thaws', async () => {
    await using stage = new Stage({ start: '2026-11-21T01:59:00Z' });
    const write = stage.store.write.bind(stage.store);
    stage.daemon();
    // It freezes right after the write.
    stage.store.write = async (...args) => {
      const isOurs = await write(...args);
      if (args[2].state === 'started') {
        stage.store.write = write;
        await stage.clock.sleep(30 * MINUTE);
      }
      return isOurs;
    };
    await stage.at('2026-11-21T02:05:00Z');
    const second = stage.daemon();
    await stage.clock.advance(6 * HOUR);
    expect(stage.runs).toHaveLength(1);
    expect(await stage.row(DUE)).toMatchObject({ state: 'done', owner: second.me });
    expect(stage.lines.filter((line) => line.includes('its run is started'))).toHaveLength(2);
  });

  it('of two daemons each due time is started once; the second one stands by and takes over', async () => {
    await using stage = new Stage({ cron: '0 * * * *' });
    stage.courses = Array.from({ length: 9 }, () => ({ lastsMs: 5 * MINUTE }));
    const [first, second] = [stage.daemon(), stage.daemon()];
    await stage.at('2026-11-20T14:30:00Z');
    const roles = [first, second].map((d) => d.scheduler.health().role);
    expect(roles.sort()).toEqual(['leading', 'standby']);
    expect(second.scheduler.health().ok).toBe(true);
    first.freeze();
    await stage.at('2026-11-20T16:30:00Z');
    expect(second.scheduler.health().role).toBe('leading');
    expect(stage.runs).toHaveLength(4);
    expect(await stage.record()).toEqual([13, 14, 15, 16].map((h) => `11-20T${h}:00 done 0`));
  });
});

describe('a run that is stuck', () => {
  it.each([
    ['is asked to leave long after its deadline', false],
    ['and does not leave is killed a minute later', true],
  ])('%s, and then resumed; there are never two', async (_what, deaf) => {
    await using stage = new Stage();
    stage.courses = [{ lastsMs: 'hangs', deaf }];
    stage.daemon();
    await stage.at('2026-11-21T06:35:00Z');
    expect(stage.alarms).toEqual([]);
    let most = 0;
    for (let i = 0; i < 30; i++) {
      await stage.clock.advance(MINUTE);
      most = Math.max(most, stage.atWork());
    }
    expect(most).toBe(1);
    expect(stage.alarms).toEqual([
      expect.stringContaining('it is asked to leave'),
      ...(deaf ? [expect.stringContaining('it is killed')] : []),
    ]);
    expect(stage.told).toEqual(['stuck', 'ended']);
    expect(stage.resumed).toEqual(['run-1']);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
  });
});

describe('F46 a database that does not answer', () => {
  it.each([
    ['young enough: it is started when it is back', HOUR, 'done 0'],
    ['too old: it is missed, and the record says why', 0, 'missed'],
  ])('is reported once; a due time of meanwhile is %s', async (_what, catchUpMs, became) => {
    await using stage = new Stage({ catchUpMs });
    const daemon = stage.daemon();
    await stage.at('2026-11-21T01:50:00Z');
    stage.store.fault = new Error('connect ECONNREFUSED');
    await stage.at('2026-11-21T02:20:00Z');
    expect(daemon.scheduler.health()).toMatchObject({ ok: false, problem: expect.stringContaining('ECONNREFUSED') });
    expect(stage.alarms).toEqual([expect.stringContaining('cannot go on for now')]);
    stage.store.fault = null;
    await stage.at('2026-11-21T04:00:00Z');
    expect(await stage.record()).toEqual([`11-21T02:00 ${became}`]);
    if (became === 'missed') expect((await stage.row(DUE))!.reason).toContain('the database did not answer');
    expect(daemon.scheduler.health().ok).toBe(true);
  });

  it('makes the daemon unwell within seconds, not when the tries are over', async () => {
    await using stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    const daemon = stage.daemon();
    await stage.clock.advance(5 * MINUTE);
    stage.store.hangs = true;
    await stage.clock.advance(MINUTE + 12_000);
    expect(daemon.scheduler.health()).toMatchObject({ ok: false, problem: expect.stringContaining('does not answer') });
    stage.store.hangs = false;
  });
});
