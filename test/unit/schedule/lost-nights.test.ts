/** What a restart at a bad moment must not do: lose a night, start one days late, or take another schedule's run for its own. */
import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, Stage } from './stage.ts';

const at = (stage: Stage, iso: string): Promise<void> => stage.clock.advance(Date.parse(iso) - stage.clock.now());

describe('F41 a due time whose process is ended before it has stored a run', () => {
  it('is carried out by the next daemon, and is nothing to be content with until then', async () => {
    const stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    stage.courses = [{ preparesMs: 10 * MINUTE }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:02:00Z');
    await daemon.stop();
    expect(await stage.record()).toEqual(['11-21T02:00 queued']);
    const next = stage.daemon();
    await at(stage, '2026-11-21T05:00:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 done 0']);
    expect(stage.runs).toHaveLength(1);
    await next.stop();
  });

  it('is missed when it is too old by then', async () => {
    const stage = new Stage({ start: '2026-11-21T01:00:00Z', catchUpMs: 0 });
    stage.courses = [{ preparesMs: 10 * MINUTE }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:02:00Z');
    await daemon.stop();
    expect(await stage.record()).toEqual(['11-21T02:00 missed']);
    expect(stage.runs).toEqual([]);
  });

  it('is started again by the same daemon, but not without end', async () => {
    const stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    stage.courses = Array.from({ length: 50 }, () => ({ preparesMs: 10 * MINUTE }));
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:01:00Z');
    let started = 0;
    for (; started < 50 && stage.atWork() > 0; started++) {
      stage.killProcesses();
      await stage.clock.advance(2 * MINUTE);
    }
    expect(started).toBe(3);
    expect(await stage.record()).toEqual(['11-21T02:00 done']);
    expect(stage.runs).toEqual([]);
    await daemon.stop();
  });
});

describe('F53 a due time that waits', () => {
  it('is not started days later by another daemon', async () => {
    const stage = new Stage({ start: '2026-11-02T01:00:00Z', cron: '0 2,3 * * *', ifRunning: 'queue' });
    stage.courses = [{ lastsMs: 2 * HOUR }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-02T03:30:00Z');
    expect(await stage.record()).toEqual(['11-02T02:00 started', '11-02T03:00 queued']);
    daemon.kill();
    stage.killProcesses();
    await at(stage, '2026-11-05T12:30:00Z');
    const next = stage.daemon();
    await stage.clock.advance(HOUR);
    expect((await stage.record()).slice(0, 2)).toEqual(['11-02T02:00 done 0', '11-02T03:00 missed']);
    expect(stage.runs).toHaveLength(1);
    expect(stage.alarms.join()).toContain('waited');
    await next.stop();
  });

  it('waits as long as it takes for the daemon that let it wait', async () => {
    const stage = new Stage({ start: '2026-11-02T01:00:00Z', cron: '0 2,3 2 * *', ifRunning: 'queue' });
    stage.courses = [{ lastsMs: 3.5 * HOUR }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-02T09:00:00Z');
    expect(await stage.record()).toEqual(['11-02T02:00 done 0', '11-02T03:00 done 0']);
    await daemon.stop();
  });
});

describe('F41 the run of another schedule of the same database', () => {
  const foreignRun = (stage: Stage, more: { ended: boolean }) => {
    const now = stage.wall.now();
    const result = { state: 'completed', exitCode: 0, reason: null, onTime: true, products: null, cost: 1, hint: '' };
    stage.runs.push({
      id: 'foreign',
      ours: false,
      startedAtMs: now,
      deadlineAtMs: now + 4 * HOUR,
      graceMs: MINUTE,
      endsAtMs: Infinity,
      course: {},
      result: { ...result, exitCode: 0, run: 'foreign' },
      ...more,
    });
  };

  it('is not written down as this one’s', async () => {
    const stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    stage.courses = [{ preparesMs: 10 * MINUTE }, { refused: true }];
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:01:00Z');
    foreignRun(stage, { ended: true });
    stage.killProcesses();
    await at(stage, '2026-11-21T02:30:00Z');
    expect(await stage.record()).toEqual(['11-21T02:00 done 16']);
    expect((await stage.store.get(Date.parse('2026-11-21T02:00:00Z')))?.result?.run).toBeNull();
    await daemon.stop();
  });

  it('is not taken up by this one, and still keeps it from starting', async () => {
    const stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    foreignRun(stage, { ended: false });
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T02:30:00Z');
    expect(stage.resumed).toEqual([]);
    expect(await stage.record()).toEqual(['11-21T02:00 skipped']);
    await daemon.stop();
  });
});

describe('F54 what the clock said wrongly', () => {
  it('lets a due time that was told as missed ahead of its time run when it comes', async () => {
    const stage = new Stage({ start: '2026-11-21T12:00:00Z', catchUpMs: 0 });
    const daemon = stage.daemon();
    await stage.clock.advance(MINUTE);
    stage.skewMs = 36 * HOUR;
    await stage.clock.advance(2 * MINUTE);
    expect(stage.told).toContain('missed');
    stage.skewMs = 0;
    await stage.clock.advance(16 * HOUR);
    expect(await stage.record()).toContain('11-22T02:00 done 0');
    await daemon.stop();
  });

  it('is no reason to forget the due times of now: rows of the future do not count', async () => {
    const stage = new Stage({ start: '2026-11-21T12:00:00Z' });
    const daemon = stage.daemon();
    await stage.clock.advance(MINUTE);
    stage.skewMs = 72 * HOUR;
    await stage.clock.advance(2 * MINUTE);
    await daemon.stop();
    stage.skewMs = 0;
    await at(stage, '2026-11-22T02:20:00Z');
    const next = stage.daemon();
    await stage.clock.advance(3 * HOUR);
    expect(await stage.record()).toContain('11-22T02:00 done 0');
    await next.stop();
  });
});

describe('F53 a database that is away', () => {
  it('is the reason why a due time was missed, not that nobody was there', async () => {
    const stage = new Stage({ start: '2026-11-21T01:00:00Z', catchUpMs: 0 });
    const daemon = stage.daemon();
    await at(stage, '2026-11-21T01:58:30Z');
    stage.store.fault = new Error('no answer');
    await at(stage, '2026-11-21T02:30:00Z');
    stage.store.fault = null;
    await stage.clock.advance(5 * MINUTE);
    expect(await stage.record()).toEqual(['11-21T02:00 missed']);
    const slot = await stage.store.get(Date.parse('2026-11-21T02:00:00Z'));
    expect(slot?.reason).toContain('database');
    await daemon.stop();
  });

  it('makes the daemon unwell within seconds, not when the tries are over', async () => {
    const stage = new Stage({ start: '2026-11-21T01:00:00Z' });
    const daemon = stage.daemon();
    await stage.clock.advance(5 * MINUTE);
    expect(daemon.scheduler.health().ok).toBe(true);
    stage.store.hangs = true;
    await stage.clock.advance(MINUTE + 12_000);
    expect(daemon.scheduler.health()).toMatchObject({ ok: false, problem: expect.stringContaining('does not answer') });
    stage.store.hangs = false;
    await daemon.stop();
  });
});
