/** A boot that installs Chromium, in the plan and in the limits of the run. */
import { describe, expect, it } from 'vitest';
import { limitsOf } from '../../../../orchestrator/core/model/run-deadlines.ts';
import { defaultsFor } from '../../../../orchestrator/core/plan/defaults.ts';
import { plan } from '../../../support/plan-input.ts';

const MINUTE = 60_000;

describe('machines that install Chromium at their boot', () => {
  const planOf = (browser: 'ready' | 'installed', deadlineMs: number) =>
    plan({ ...defaultsFor('aws', browser), deadlineMs });

  it('are planned with a longer boot, and therefore with fewer products each and more instances', () => {
    const ready = planOf('ready', 60 * MINUTE);
    const installed = planOf('installed', 60 * MINUTE);
    expect(installed.bootP95Ms).toBe(5 * MINUTE);
    expect(installed.capacityEach).toBeLessThan(ready.capacityEach);
    expect(installed.instances).toBeGreaterThan(ready.instances);
  });

  it('are not given up as unbooted before twice that time', () => {
    const run = { startedAtMs: 0, deadlineAtMs: 60 * MINUTE, plan: planOf('installed', 60 * MINUTE) };
    expect(limitsOf(run).bootMs).toBeGreaterThanOrEqual(10 * MINUTE);
  });

  it('are only planned on AWS', () => {
    expect(defaultsFor('sandbox', 'installed')).toEqual(defaultsFor('sandbox'));
    expect(defaultsFor('emulator', 'installed')).toEqual(defaultsFor('emulator'));
    expect(defaultsFor('aws')).toEqual(defaultsFor('aws', 'ready'));
  });
});
