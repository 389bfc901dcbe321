import { describe, expect, it } from 'vitest';
import { OfferTurns, offerTargets } from '../../../orchestrator/control/sharing/offer-targets.ts';
import { anInstance, aWorld } from './builders.ts';

describe('offerTargets', () => {
  it('counts the healthy instances behind the balancer of each region in service', () => {
    const world = aWorld({ instances: [0, 1, 2].map((slot) => anInstance(slot)) });
    expect(offerTargets(world)).toEqual([{ url: 'http://127.0.0.1:2', healthy: 3 }]);
    const lost = [anInstance(0, { phase: 'lost' }), anInstance(1, { registered: false }), anInstance(2)];
    expect(offerTargets(aWorld({ instances: lost }))).toEqual([{ url: 'http://127.0.0.1:2', healthy: 1 }]);
    expect(offerTargets(aWorld({ balancerActive: false }))).toEqual([]);
    expect(offerTargets(aWorld({ targets: new Map() }))).toEqual([]);
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
