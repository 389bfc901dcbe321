/** What a reboot, a kill, a database that is down, a stuck run and a second daemon do to the schedule. */
import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, Stage } from './stage.ts';

const at = (stage: Stage, iso: string): Promise<void> => stage.clock.advance(Date.parse(iso) - stage.clock.now());

describe('F41 a run that was interrupted', () => {
  it('by SIGTERM to the daemon is resumed by the next start, and its due time is done then', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    const first = stage.daemon();
    await at(stage, '2026-11-21T02:30:00Z');
    await first.stop();
    expect(stage.atWork()).toBe(0);
    expect(await stage.record()).toEqual(['11-21T02:00 started']);
    const second = stage.daemon();
    await stage.clock.advance(HOUR);
    expect(stage.resumed).toEqual(['run-1']);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    expect(stage.told).toEqual(['done']);
    await second.stop();
  });

  it('by a reboot as well; the due time of meanwhile comes after it', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', deadlineMs: HOUR });
    stage.courses = [{ lastsMs: 50 * MINUTE }, {}];
    const first = stage.daemon();
    await at(stage, '2026-11-21T02:30:00Z');
    first.kill();
    stage.killProcesses();
    await at(stage, '2026-11-22T02:05:00Z');
    const second = stage.daemon();
    await stage.clock.advance(2 * HOUR);
    // Its deadline is long past: ending it is no reason to skip.
    expect(stage.resumed).toEqual(['run-1']);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 0']);
    await second.stop();
  });

  it('not at all, when only the daemon was killed: the next one watches it', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    const first = stage.daemon();
    await at(stage, '2026-11-21T02:30:00Z');
    first.kill();
    const second = stage.daemon();
    await stage.clock.advance(MINUTE);
    expect(second.scheduler.health().running).toMatchObject({ kind: 'slot', due: '2026-11-21T02:00:00.000Z' });
    await stage.clock.advance(HOUR);
    expect(stage.resumed).toEqual([]);
    expect(stage.runs).toHaveLength(1);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    await second.stop();
  });

  it('before it began, is started again while the due time is young, and missed otherwise', async () => {
    for (const [back, became] of [
      ['2026-11-21T02:30:00Z', 'done 0'],
      ['2026-11-21T08:00:00Z', 'missed'],
    ] as const) {
      const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
      const first = stage.daemon();
      // The process lives for half a second: too short to store a run, long enough to sign in.
      await at(stage, '2026-11-21T02:00:00Z');
      await stage.clock.advance(500);
      await stage.store.signIn(Date.parse('2026-11-21T02:00:00Z'), 1, 'here:9999:1');
      first.kill();
      stage.killProcesses();
      await at(stage, back);
      const second = stage.daemon();
      await stage.clock.advance(2 * HOUR);
      expect(await stage.record()).toEqual([`11-21T02:00 ${became}`]);
      await second.stop();
    }
  });

  it('is tried again when resuming fails, and given up in the end without blocking the schedule', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:30:00Z');
    stage.resumeFails = 3;
    stage.killProcesses();
    await at(stage, '2026-11-21T06:00:00Z');
    expect(stage.resumed).toHaveLength(4);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    await at(stage, '2026-11-22T02:30:00Z');
    stage.resumeFails = 100;
    stage.killProcesses();
    await at(stage, '2026-11-22T12:00:00Z');
    expect(stage.resumed).toHaveLength(12);
    expect(stage.alarms).toEqual([expect.stringContaining('could not be resumed 8 times')]);
    await at(stage, '2026-11-23T12:00:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 done 0', '11-22T02:00 done 1', '11-23T02:00 done 0']);
    await daemon.stop();
  });
});

describe('a run that is stuck', () => {
  it('is told to leave long after its deadline, and then resumed', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', deadlineMs: 4 * HOUR });
    stage.courses = [{ lastsMs: 'hangs' }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T06:35:00Z');
    expect(stage.alarms).toEqual([]);
    await at(stage, '2026-11-21T07:00:00Z');
    expect(stage.alarms).toEqual([expect.stringContaining('it is told to leave')]);
    expect(stage.told).toEqual(['stuck', 'done']);
    expect(stage.resumed).toEqual(['run-1']);
    expect(stage.atWork()).toBe(0);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    await daemon.stop();
  });

  it('and does not leave is ended a minute later; there are never two', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', deadlineMs: HOUR });
    stage.courses = [{ lastsMs: 'hangs', deaf: true }];
    const daemon = stage.daemon();
    let most = 0;
    for (let i = 0; i < 24 * 60; i++) {
      await stage.clock.advance(MINUTE);
      most = Math.max(most, stage.atWork());
    }
    expect(most).toBe(1);
    expect(stage.alarms).toEqual([
      expect.stringContaining('it is told to leave'),
      expect.stringContaining('its process is ended'),
    ]);
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    await daemon.stop();
  });

  it('is not one whose clock was set a day ahead', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', cron: '0 2 21 11 *' });
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:30:00Z');
    stage.skewMs = 24 * HOUR;
    await stage.clock.advance(20 * MINUTE);
    expect(stage.alarms).toEqual([]);
    expect(stage.atWork()).toBe(1);
    await daemon.stop();
  });
});

describe('F41 two daemons', () => {
  it('start each due time once; the second one stands by and takes over', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z', cron: '0 * * * *', pollMs: 15_000 });
    stage.courses = Array.from({ length: 9 }, () => ({ lastsMs: 5 * MINUTE }));
    const [first, second] = [stage.daemon(), stage.daemon()];
    await at(stage, '2026-11-20T14:30:00Z');
    expect([first, second].map((d) => d.scheduler.health().role)).toEqual(['leading', 'standby']);
    expect(second.scheduler.health().ok).toBe(true);
    first.kill();
    await at(stage, '2026-11-20T16:30:00Z');
    expect(second.scheduler.health().role).toBe('leading');
    expect(stage.runs).toHaveLength(4);
    expect(await stage.record()).toEqual([13, 14, 15, 16].map((h) => `11-20T${h}:00 done 0`));
    await second.stop();
  });

  it('a frozen one that thaws starts nothing more', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    const daemon = stage.daemon();
    await stage.clock.advance(MINUTE);
    const taken = await stage.store.takeLead('other:1:1', '0 2 * * * UTC', 100 * HOUR, {
      owner: daemon.owner,
      expiresAtMs: 0,
    });
    expect(taken).toMatchObject({ fence: 2 });
    await at(stage, '2026-11-21T12:00:00Z');
    expect(stage.runs).toEqual([]);
    expect(await stage.record()).toEqual([]);
    expect(daemon.scheduler.health().role).toBe('standby');
    await daemon.stop();
  });
});

describe('F46 a database that does not answer', () => {
  it('is told of once, and a due time of meanwhile is started when it is back', async () => {
    const stage = new Stage({ start: '2026-11-20T12:00:00Z' });
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T01:50:00Z');
    stage.store.fault = new Error('connect ECONNREFUSED');
    await at(stage, '2026-11-21T02:20:00Z');
    expect(daemon.scheduler.health()).toMatchObject({ ok: false, problem: expect.stringContaining('ECONNREFUSED') });
    expect(stage.alarms).toEqual([expect.stringContaining('cannot go on for now')]);
    stage.store.fault = null;
    await at(stage, '2026-11-21T04:00:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    expect(daemon.scheduler.health().ok).toBe(true);
    await daemon.stop();
  });
});
