import { describe, expect, it } from 'vitest';
import { hostsFreeAtMs } from '../../../orchestrator/core/decide/host-rest.ts';
import { limitsOf } from '../../../orchestrator/core/model/run-deadlines.ts';
import { ANY_HOST } from '../../../shared/domain/domains.ts';
import { hostGapMs, restOfSilentMs } from '../../../shared/domain/host-policy.ts';
import { hostLeaseMs } from '../../../shared/domain/limits.ts';
import { aRun, START_MS } from './builders.ts';

const usual = aRun();
const { site } = usual.settings;
const run = { ...usual, settings: { ...usual.settings, site: { ...site, productUrl: ANY_HOST } } };
const GAP_MS = hostGapMs(site.intervalMs, 0);
const NOW = START_MS + 60_000;
const AT = { nowMs: NOW, silentFromMs: START_MS };
const heard = { lastHeartbeatAtMs: START_MS + 40_000, cloudState: 'running' as const };

describe('when the hosts of an instance may be asked by another one', () => {
  it('is one gap after it has closed its epoch, or its machine is gone', () => {
    expect(hostsFreeAtMs(run, heard, 'closed', AT)).toBe(NOW + GAP_MS);
    expect(hostsFreeAtMs(run, { ...heard, cloudState: 'terminated' }, 'lost', AT)).toBe(NOW + GAP_MS);
  });

  it('is else when its lease is over, its last request has ended, and a gap more', () => {
    const leaseMs = hostLeaseMs(limitsOf(run));
    expect(leaseMs).toBe(2 * limitsOf(run).lostMs);
    expect(hostsFreeAtMs(run, heard, 'lost', AT)).toBe(START_MS + 40_000 + leaseMs + site.timeoutMs + GAP_MS);
  });

  it('counts the lease from a change of the main server, or of its clock', () => {
    const leaseMs = hostLeaseMs(limitsOf(run)) + site.timeoutMs + GAP_MS;
    expect(hostsFreeAtMs(run, heard, 'lost', { ...AT, silentFromMs: NOW })).toBe(NOW + leaseMs);
    const setBack = { ...heard, lastHeartbeatAtMs: NOW + 86_400_000 };
    expect(hostsFreeAtMs(run, setBack, 'lost', AT)).toBe(NOW + leaseMs);
  });

  it('is a gap as the operator asks for it', () => {
    const pace = { atMs: 0, intervalMs: 3 * site.intervalMs, pausedUntilMs: null, addresses: 1, isForNextPlan: false };
    const slower = { ...run, operatorPace: { ...pace, runId: run.id } };
    expect(hostsFreeAtMs(slower, heard, 'closed', AT)).toBe(NOW + hostGapMs(3 * site.intervalMs, 0));
  });

  it('is at once where it was never heard: nothing was granted to it', () => {
    expect(hostsFreeAtMs(run, { ...heard, lastHeartbeatAtMs: null }, 'lost', AT)).toBe(NOW);
  });

  it('says nothing of one site, where each address has its own pace', () => {
    expect(hostsFreeAtMs(usual, heard, 'lost', AT)).toBeUndefined();
  });
});

describe('the rest of a host without an answer', () => {
  it('begins after the second request, and doubles', () => {
    const restsIn = (runMs: number): number[] => [1, 2, 3, 4].map((silent) => restOfSilentMs(silent, runMs));
    expect(restsIn(4 * 3_600_000)).toEqual([0, 60_000, 120_000, 240_000]);
    expect(restsIn(240_000)).toEqual([0, 1_000, 2_000, 4_000]);
  });
});
