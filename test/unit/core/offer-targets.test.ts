import { describe, expect, it } from 'vitest';
import { OfferTurns, offerTargets } from '../../../orchestrator/core/decide/shares/offer-targets.ts';
import { CloudSnapshot } from '../../../orchestrator/core/model/cloud-snapshot.ts';
import { aCloudInstance, anInstance, aWorld, START_MS } from './builders.ts';

describe('offerTargets', () => {
  it('counts the healthy instances behind the balancer of each region in service', () => {
    const world = aWorld({ instances: [0, 1, 2].map((slot) => anInstance(slot)) });
    expect(offerTargets(world)).toEqual([{ url: 'http://127.0.0.1:2', healthy: 3 }]);
    const lost = [anInstance(0, { phase: 'lost' }), anInstance(1, { registered: false }), anInstance(2)];
    expect(offerTargets(aWorld({ instances: lost }))).toEqual([{ url: 'http://127.0.0.1:2', healthy: 1 }]);
    expect(offerTargets(aWorld({ balancerActive: false }))).toEqual([]);
    expect(offerTargets(aWorld({ targets: new Map() }))).toEqual([]);
  });

  it('are the healthy instances themselves without a balancer', () => {
    const balancer = { url: 'direct:run', loadBalancerArn: '', targetGroupArn: '', listenerArn: '' };
    const instances = [0, 1, 2].map((slot) => anInstance(slot, { instanceId: `i-${slot}` }));
    const shown = instances.map((i) => aCloudInstance(i, { privateAddress: `10.0.0.${i.slot}` }));
    const health = ['healthy', 'unhealthy', 'healthy'] as const;
    const targets = new Map(health.map((one, slot) => [`i-${slot}`, one]));
    const world = aWorld({ instances, balancer, targets, cloud: new CloudSnapshot(shown, START_MS) });
    expect(offerTargets(world)).toEqual([
      { url: 'http://10.0.0.0:8080', healthy: 1 },
      { url: 'http://10.0.0.2:8080', healthy: 1 },
    ]);
  });
});

describe('OfferTurns', () => {
  const turns = (n: number, ...from: [string, number][]): string => {
    const order = new OfferTurns();
    const targets = from.map(([url, healthy]) => ({ url, healthy }));
    return Array.from({ length: n }, () => order.next(targets)!.url).join('');
  };

  it('goes round by healthy instances, evenly mixed', () => {
    expect(turns(3, ['a', 4])).toBe('aaa');
    expect(turns(6, ['a', 1], ['b', 1], ['c', 1])).toBe('abcabc');
    expect(turns(8, ['a', 3], ['b', 1])).toBe('aabaaaba');
  });

  it('has no turn without targets', () => {
    expect(new OfferTurns().next([])).toBeUndefined();
  });
});
