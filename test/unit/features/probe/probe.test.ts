/** `orchestrator probe` on the command line: what it refuses, and how it shows what it has found. */
import { features } from '../../../support/features.ts';
import { describe, expect, it } from 'vitest';
import { probeCommand, renderFindings } from '../../../../orchestrator/features/probe/command.ts';
import type { Output } from '../../../../orchestrator/cli/output.ts';
import { findingsOf } from '../../../../orchestrator/features/probe/findings.ts';
import type { SeriesResult } from '../../../../orchestrator/features/probe/series.ts';
import { expectFault } from '../../../support/expect-fault.ts';

const MINUTE = 60_000;
const LIMITS = { intervalsMs: [10_000], requests: 200, budget: 1_000, retryEveryMs: 3 * MINUTE, maxBanMs: 60 * MINUTE };
const output: Output = { json: false, line: () => undefined, document: () => undefined };
const options = {
  configPath: 'no-such-fleet.yaml',
  environment: {},
  features,
  dryRun: true,
  yes: true,
  write: false,
  hasPermission: true,
  limits: LIMITS,
};

describe('the command', () => {
  it('sends nothing without permission', async () => {
    await expectFault(probeCommand({ ...options, hasPermission: false }, output), 'usage', /bans an address/);
  });

  it('refuses a budget that is too small for one series', async () => {
    const limits = { ...LIMITS, budget: 199 };
    await expectFault(probeCommand({ ...options, limits }, output), 'usage', /--budget 199 is not enough/);
  });
});

describe('the findings', () => {
  const calm = (intervalMs: number): SeriesResult => ({
    intervalMs,
    address: '203.0.113.91',
    requests: 200,
    ban: null,
    isComplete: true,
  });
  const ban = { rule: 'status-403', afterRequests: 60, minMs: 27.75 * MINUTE, maxMs: 30.9 * MINUTE };

  it('are a table and what follows from it', () => {
    const measured = { ...calm(5_000), requests: 82, ban };
    const confirmed = { ...calm(5_000), requests: 62, ban: { ...ban, minMs: 0, maxMs: null } };
    expect(renderFindings(findingsOf([calm(10_000), measured, confirmed], 'banned'))).toEqual([
      '',
      [
        'interval  address       requests  ban after        ban length',
        '10s       203.0.113.91       200  never            -',
        '5s        203.0.113.91        82  60 (status-403)  27m 45s to 30m 54s',
        '5s        203.0.113.91        62  60 (status-403)  not measured',
      ].join('\n'),
      '',
      '344 requests in all. Two series ended in a ban: the probe ended there.',
      'interval: 10s: 200 requests without a ban, so at most 1.5 % of requests lead to one (95 % confidence).',
      '  A limit above 200 requests an address would not have shown.',
      'cool_down: 31m: one ban lasted between 27m 45s and 30m 54s.',
    ]);
  });

  it('say what is not known', () => {
    expect(renderFindings(findingsOf([calm(10_000)], 'budget')).slice(-2)).toEqual([
      '  A limit above 200 requests an address would not have shown; shorter intervals than these were not tried.',
      'cool_down: unknown: the end of no ban was seen.',
    ]);
    expect(renderFindings(findingsOf([], 'interrupted'))).toContain(
      'No interval is known to be tolerated: try longer ones.',
    );
  });
});
