import { FleetSnapshot } from '../../../orchestrator/core/model/fleet-snapshot.ts';
import { describe, expect, it } from 'vitest';
import {
  Sources,
  egressAddress,
  foreignSource,
  sharesAddressWith,
} from '../../../orchestrator/core/decide/nat-detection.ts';
import { NO_PROGRESS } from '../../../shared/wire/callbacks.ts';
import type { InstanceRecord } from '../../../orchestrator/core/model/stores.ts';
import { START_MS, anInstance } from './builders.ts';

const address = '203.0.113.7';
const first = anInstance(0, { address, phaseAtMs: START_MS + 5 });
const second = anInstance(1, { address, phaseAtMs: START_MS + 9 });
const losers = (...all: InstanceRecord[]): number[] =>
  all.filter((r) => sharesAddressWith(new FleetSnapshot(all), r) !== null).map((r) => r.slot);

describe('F34: instances behind one address', () => {
  it('keeps the one that was ready first', () => {
    expect(losers(first, second)).toEqual([1]);
    expect(losers({ ...first, phaseAtMs: START_MS + 10 }, second)).toEqual([0]);
    expect(sharesAddressWith(new FleetSnapshot([first, second]), second)).toBe(first);
  });

  it('keeps the one that crawls, whichever was first', () => {
    expect(losers(first, { ...second, progress: { ...NO_PROGRESS, assigned: 5 } })).toEqual([0]);
  });

  it('keeps one that has sent its hello rather than one that boots', () => {
    expect(losers({ ...first, phase: 'booting', publicKey: null }, second)).toEqual([0]);
  });

  it('keeps one of many', () => {
    const many = Array.from({ length: 5 }, (_, slot) => anInstance(slot, { address }));
    expect(losers(...many)).toEqual([1, 2, 3, 4]);
  });

  it.each(['done', 'lost', 'terminating', 'terminated'] as const)('ignores one that is %s', (phase) => {
    expect(losers({ ...first, phase }, second)).toEqual([]);
  });

  it('ignores instances with unknown addresses', () => {
    expect(losers({ ...first, address: null }, { ...second, address: null })).toEqual([]);
    expect(losers(first, anInstance(1))).toEqual([]);
  });
});

describe('egressAddress', () => {
  it.each([
    ['the NAT through which a hello came', ['203.0.113.9', '198.51.100.1', '10.0.0.4'], '203.0.113.9'],
    ['the same as an IPv4-mapped IPv6 address', ['::ffff:203.0.113.9', null, '10.0.0.4'], '203.0.113.9'],
    ['the address from EC2, behind our own proxy', ['10.0.0.99', '198.51.100.1', '10.0.0.4'], '198.51.100.1'],
    [
      'the address from EC2, with a tunnel on this machine',
      ['127.0.0.1', '198.51.100.1', '172.31.5.5'],
      '198.51.100.1',
    ],
    ['the address from the instance, without another source', ['192.168.1.1', null, '100.64.0.4'], '100.64.0.4'],
    ['the address from the instance, without a source address', [undefined, null, '10.0.0.4'], '10.0.0.4'],
    ['the loopback address that it is bound to', ['203.0.113.9', '54.1.2.3', '127.20.0.4'], '127.20.0.4'],
    ['a public IPv6 address', ['2001:db8::1', null, '10.0.0.4'], '2001:db8::1'],
    ['not a private IPv6 address', ['fd00::1', null, '10.0.0.4'], '10.0.0.4'],
  ] as const)('is %s', (_, [source, ec2, own], egress) => {
    expect(egressAddress({ source, ec2, own }, true)).toBe(egress);
  });

  it('is the address from EC2 while there may be a public proxy in front of the main server', () => {
    expect(egressAddress({ source: '203.0.113.9', ec2: '198.51.100.1', own: '10.0.0.4' }, false)).toBe('198.51.100.1');
    expect(egressAddress({ source: '203.0.113.9', ec2: null, own: '10.0.0.4' }, false)).toBe('203.0.113.9');
  });
});

describe('F34: Sources', () => {
  const proxy = '104.16.1.1';
  const hello = (sources: Sources, slot: number, source: string) =>
    sources.hello({ slot, epoch: 1 }, { source, ec2: `198.51.100.${slot}`, own: `10.0.0.${slot}` });

  it('does not take a public proxy in front of the main server for a shared address', () => {
    const sources = new Sources();
    for (const slot of [1, 2, 3])
      expect(hello(sources, slot, proxy)).toEqual({ address: `198.51.100.${slot}`, corrected: [] });
  });

  it('trusts source addresses once one matches EC2, including earlier ones', () => {
    const sources = new Sources();
    expect(hello(sources, 1, proxy).address).toBe('198.51.100.1');
    expect(hello(sources, 2, proxy).address).toBe('198.51.100.2');
    expect(hello(sources, 3, '::ffff:198.51.100.3')).toEqual({
      address: '198.51.100.3',
      corrected: [
        { slot: 1, epoch: 1, address: proxy },
        { slot: 2, epoch: 1, address: proxy },
      ],
    });
    expect(hello(sources, 4, proxy)).toEqual({ address: proxy, corrected: [] });
    expect(hello(sources, 5, '198.51.100.5').corrected).toEqual([]);
  });
});

describe('foreignSource', () => {
  const [PUBLIC, PRIVATE] = ['198.51.100.1', '10.0.0.4'];
  it.each<[string, string | undefined, [string | null, string | null], string | null]>([
    ['its public address', `::ffff:${PUBLIC}`, [PUBLIC, PRIVATE], null],
    ['its private address', PRIVATE, [PUBLIC, PRIVATE], null],
    ['another public address', '203.0.113.9', [PUBLIC, PRIVATE], '203.0.113.9'],
    ['a public address of one that has none', '203.0.113.9', [null, PRIVATE], '203.0.113.9'],
    ['another private address', '10.0.0.5', [PUBLIC, PRIVATE], '10.0.0.5'],
    ['a private address, while that from EC2 is unknown', '10.0.0.5', [PUBLIC, null], null],
    ['this machine', '127.0.0.1', [PUBLIC, PRIVATE], null],
    ['anywhere, while EC2 shows nothing', '203.0.113.9', [null, null], null],
    ['nowhere', undefined, [PUBLIC, PRIVATE], null],
  ])('of a hello from %s', (_, source, [shownPublic, shownPrivate], foreign) => {
    expect(foreignSource(source, { public: shownPublic, private: shownPrivate })).toBe(foreign);
  });
});
