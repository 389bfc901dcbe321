import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import type { RobotsPolicy, RobotsReading } from '../../../../shared/domain/robots-matcher.ts';
import { awaitSite } from '../../../../orchestrator/core/prepare/await-site.ts';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { ALLOW_ALL, START_MS } from '../builders.ts';

const MINUTE_MS = 60_000;
const DOWN: RobotsPolicy = { ...ALLOW_ALL, access: 'none', source: 'connect ECONNREFUSED' };

/** Waits for a site that comes up at `upAtMs`, in a run of four hours; returns the outcome and the printed lines. */
async function wait(options: {
  upAtMs?: number;
  dryRun?: boolean;
  check?: 'on' | 'off';
  leaveAtMs?: number;
  retryAfterMs?: number;
}) {
  const { upAtMs = Infinity, dryRun = false, check = 'on', leaveAtMs = Infinity, retryAfterMs } = options;
  const clock = new VirtualClock(START_MS);
  const config = { values: { run: { site_wait: 10 * MINUTE_MS, deadline: 20 * MINUTE_MS }, site: { check } } };
  const said: string[] = [];
  const left = new AbortController();
  const ends: { code?: string; access?: string; tookMs: number }[] = [];
  const tookMs = (): number => clock.now() - START_MS;
  const down: RobotsReading = { ...DOWN, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  const read = () => Promise.resolve(tookMs() >= upAtMs ? ALLOW_ALL : down);
  const waiting = { clock, signal: left.signal, say: (text: string) => said.push(text), read };
  void awaitSite(await read(), config as Config, dryRun, waiting).then(
    ({ access }) => ends.push({ access, tookMs: tookMs() }),
    (error: { code: string }) => ends.push({ code: error.code, tookMs: tookMs() }),
  );
  for (let i = 0; i < 10_000 && ends.length === 0; i++) {
    if (tookMs() >= leaveAtMs) left.abort();
    await clock.advance(500);
  }
  return { end: ends[0], said };
}

describe('awaitSite', () => {
  it('prints nothing for a site that answers', async () => {
    expect(await wait({ upAtMs: 0 })).toEqual({ end: { access: 'all', tookMs: 0 }, said: [] });
  });

  it('waits for a site to come up, and prints that it waits', async () => {
    const { end, said } = await wait({ upAtMs: 3 * MINUTE_MS });
    expect(end).toEqual({ access: 'all', tookMs: 3 * MINUTE_MS });
    expect(said[0]).toMatch(/ECONNREFUSED; waiting up to 10m/);
  });

  it.each([
    ['run.site_wait', {}, 10 * MINUTE_MS],
    ['a quarter of the deadline in a dry run', { dryRun: true }, 5 * MINUTE_MS],
  ])('waits at most %s', async (_, options, tookMs) => {
    expect((await wait(options)).end).toEqual({ code: 'site-down', tookMs });
  });

  it('asks no earlier than the site wants, and gives up at once when that is too late', async () => {
    expect((await wait({ upAtMs: 1, retryAfterMs: 4 * MINUTE_MS })).end).toEqual({
      access: 'all',
      tookMs: 4 * MINUTE_MS,
    });
    expect((await wait({ upAtMs: 1, retryAfterMs: 11 * MINUTE_MS })).end).toEqual({ code: 'site-down', tookMs: 0 });
  });

  it('does not wait with site.check: off', async () => {
    expect(await wait({ check: 'off' })).toEqual({ end: { access: 'none', tookMs: 0 }, said: [] });
  });

  it('can be interrupted', async () => {
    const { end } = await wait({ leaveAtMs: MINUTE_MS });
    expect(end).toMatchObject({ code: 'interrupted' });
  });
});
