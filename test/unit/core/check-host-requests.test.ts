/** What `verify` says of the request logs of a run with many hosts: one owner at a time, one gap over all instances. */
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '../../../orchestrator/core/model/stores.ts';
import { MemoryObjectStore } from '../../../orchestrator/core/simulation/cloud/memory-objects.ts';
import { checkRequests } from '../../../orchestrator/core/verify/check-requests.ts';
import type { ClosedEpoch } from '../../../orchestrator/core/verify/closed-epoch.ts';
import { ANY_HOST } from '../../../shared/domain/domains.ts';
import { anInstance } from './builders.ts';
import { epochOf, publicKey, storeLog } from './request-logs.ts';

const run = {
  id: 'r',
  publicKey: 'none',
  settings: { partsSigned: true, site: { intervalMs: 1_000, productUrl: ANY_HOST } },
} as RunRecord;

const PROCESS = 'process 0 2026-01-01T00:00:00.000Z';
/** Half of the round trip is the uncertainty, to which come one millisecond and what clocks drift. */
const BEGIN = [PROCESS, 'clock 0 0 4'];
const SHORT = 'no gap of a host is under the interval';
const OWNERS = 'each host has one owner at a time';
const OPEN = 'not proved: 1 gap between two processes whose clocks are not known well enough';

/** A host by its numbers in the log, and requests to it. */
const asked = (host: string, times: readonly number[], { n = 0, domain = 0, purpose = 'p' } = {}): string[] => [
  `host ${n} ${domain} ${host}`,
  ...times.map((ms) => `> ${ms} ${n} ${purpose}`),
];

/** Of instances with these logs, each a list of lines. */
function check(...logs: string[][]) {
  return checkEpochs(logs.map((lines) => [lines]));
}

async function checkEpochs(epochs: readonly string[][][], change: (slot: number) => Partial<ClosedEpoch> = () => ({})) {
  const objects = new MemoryObjectStore();
  const closed: ClosedEpoch[] = [];
  for (const [slot, logs] of epochs.entries()) {
    const refs = await Promise.all(logs.map((lines, seq) => storeLog(objects, lines, { slot, seq })));
    const requests = logs.flat().filter((line) => line.startsWith('>')).length;
    closed.push(epochOf(refs, requests, { slot, ...change(slot) }));
  }
  const { proof, differences, notes } = await checkRequests({ run, objects }, closed);
  return { proof, notes, checks: differences.map((difference) => difference.check), differences };
}

describe('the request logs of a run with many hosts', () => {
  it('prove the gaps of each host', async () => {
    const found = await check(
      [...BEGIN, ...asked('a.example', [0, 1_200]), ...asked('b.example', [1_300], { n: 1, domain: 1 })],
      [...BEGIN, ...asked('c.example', [10, 1_500]), ...asked('d.example', [1_510], { n: 1, domain: 1 })],
    );
    expect(found).toMatchObject({ checks: [], notes: [] });
    expect(found.proof).toEqual({ logs: 2, logged: 6, unlogged: 0, hosts: 4, smallestGapMs: 1_200, clocksMs: null });
  });

  it('count no gap between two hosts that one address asks', async () => {
    const of = (host: string, ms: number): string[][] => [[...BEGIN, ...asked(host, [ms])]];
    const instance = (slot: number) => anInstance(slot, { epoch: 1, publicKey, address: '10.0.0.1' });
    const epochs = [of('a.example', 0), of('b.example', 10)];
    const found = await checkEpochs(epochs, (slot) => ({ instance: instance(slot) }));
    expect(found).toMatchObject({ checks: [], notes: [], proof: { smallestGapMs: null, hosts: 2 } });
  });

  it('name the gaps of one owner that are too short', async () => {
    const { differences } = await check([...BEGIN, ...asked('a.example', [0, 900])]);
    expect(differences).toMatchObject([{ check: SHORT, found: '1 shorter ones' }]);
    expect(differences[0]!.examples).toEqual([
      'slot 0 epoch 1: 900 ms at a.example, 2026-01-01T00:00:00.900Z; at least 1000 ms are due',
    ]);
  });

  it.each([
    ['too short', 900, [SHORT], []],
    ['open', 1_001, [], [OPEN]],
    ['long enough', 1_100, [], []],
  ])('prove the gap between two owners: %s', async (_what, gapMs, checks, notes) => {
    const found = await check(
      [...BEGIN, ...asked('b.example', [0]), ...asked('a.example', [0, 2_000], { n: 1, domain: 1 })],
      [...BEGIN, ...asked('a.example', [2_000 + gapMs, 9_000])],
    );
    expect(found).toMatchObject({ checks, notes, proof: { smallestGapMs: gapMs, clocksMs: 9 } });
  });

  it('name both owners of a gap that is too short', async () => {
    const found = await check(
      [...BEGIN, ...asked('a.example', [400])],
      [...BEGIN, ...asked('www.a.example', [0], { domain: 7 })],
    );
    expect(found.differences[0]!.examples).toEqual([
      'slot 0 epoch 1 after slot 1 epoch 1: 400 ± 7 ms at a.example, 2026-01-01T00:00:00.400Z; at least 1000 ms are due',
    ]);
  });

  it('show two owners at once', async () => {
    const found = await check(
      [...BEGIN, ...asked('a.example', [0, 2_000, 4_000])],
      [...BEGIN, ...asked('a.example', [3_000], { domain: 7 })],
    );
    expect(found).toMatchObject({ checks: [OWNERS], notes: [], proof: { smallestGapMs: 2_000, clocksMs: 10 } });
    expect(found.differences).toMatchObject([{ expected: 'no exception', found: '1 time two owners' }]);
    expect(found.differences[0]!.examples).toEqual([
      'a.example: slot 1 epoch 1 asked it 1000 ± 10 ms before the last request of slot 0 epoch 1, 2026-01-01T00:00:03.000Z',
    ]);
  });

  it('compare an owner with all before it, not only with the one that began last', async () => {
    const found = await check(
      [...BEGIN, ...asked('a.example', [0, 60_000])],
      [...BEGIN, ...asked('a.example', [10_000])],
      [...BEGIN, 'clock 60000 0 4', ...asked('a.example', [60_500])],
    );
    expect(found.checks).toEqual([SHORT, OWNERS]);
    expect(found.differences[0]!.examples).toEqual([
      expect.stringContaining('slot 2 epoch 1 after slot 0 epoch 1: 500'),
    ]);
  });

  it('know an owner that was granted the host again', async () => {
    const between = [...BEGIN, ...asked('a.example', [3_000, 5_000], { domain: 7 })];
    const twice = (...again: string[]): string[] => [...BEGIN, ...asked('a.example', [0]), ...again, '> 7000 0 p'];
    expect(await check(twice(), between)).toMatchObject({ checks: [OWNERS], notes: [] });
    const found = await check(twice('again 0'), between);
    expect(found).toMatchObject({ checks: [], notes: [], proof: { smallestGapMs: 2_000, hosts: 1 } });
    // Of another host of it.
    expect(await check(twice('again 1'), between)).toMatchObject({ checks: [OWNERS] });
    const soon = await check(twice('again 0'), [...BEGIN, ...asked('a.example', [3_000, 6_500])]);
    expect(soon).toMatchObject({ checks: [SHORT], proof: { smallestGapMs: 500 } });
    // The gap between the two times is its own, and exact.
    const own = await check([...BEGIN, ...asked('a.example', [0]), 'again 0', '> 999 0 p']);
    expect(own).toMatchObject({ checks: [SHORT], proof: { smallestGapMs: 999, clocksMs: null } });
  });

  it.each([
    ['one of the two is broken in any case', 2_000, [SHORT], []],
    ['both may have been kept', 4_000, [], [OPEN]],
  ])('do not tell two owners from a gap when clocks are that far off; %s', async (_what, roundTrip, checks, notes) => {
    const found = await check(
      [PROCESS, `clock 0 0 ${roundTrip}`, ...asked('a.example', [0, 4_000])],
      [...BEGIN, ...asked('a.example', [3_500, 6_000])],
    );
    expect(found).toMatchObject({ checks, notes });
  });

  it('leave open what comes from a process whose clock is not known, and only that', async () => {
    const found = await check(
      ['process 0 2025-12-31T00:00:00.000Z', ...asked('a.example', [0, 172_800_000])],
      [...BEGIN, ...asked('a.example', [0, 4_000])],
      [...BEGIN, ...asked('a.example', [3_000])],
    );
    expect(found).toMatchObject({ checks: [OWNERS], notes: [OPEN] });
  });

  it('leave open what comes after a process whose clock is not known', async () => {
    const found = await check(
      [...BEGIN, ...asked('a.example', [0]), 'process 1 2026-01-01T00:00:02.000Z', '> 0 0 p'],
      [...BEGIN, ...asked('a.example', [5_000, 6_000])],
    );
    expect(found).toMatchObject({ checks: [], notes: [OPEN.replace('1 gap', '2 gaps')] });
  });

  it('know a clock from the reading nearest to a request', async () => {
    const hoursMs = 4 * 3_600_000;
    const later = `clock ${hoursMs} 0 4`;
    const more = asked('b.example', [hoursMs], { n: 1, domain: 1 });
    const found = await check(
      [PROCESS, ...asked('a.example', [0]), 'clock 10 0 4', later, ...more],
      [...BEGIN, ...asked('a.example', [1_100]), later],
    );
    expect(found).toMatchObject({ checks: [], notes: [], proof: { clocksMs: 7, smallestGapMs: 1_100 } });
    const soon = await check(
      [...BEGIN, ...asked('a.example', [hoursMs]), later],
      [PROCESS, later, ...asked('a.example', [hoursMs + 1_100])],
    );
    expect(soon).toMatchObject({ checks: [], notes: [], proof: { clocksMs: 7, smallestGapMs: 1_100 } });
  });

  it('prove thousands of hosts that have changed their owners', async () => {
    const all = (ms: number): string[] =>
      Array.from({ length: 3_000 }, (_, n) => asked(`h${n}.example`, [ms + n], { n, domain: n })).flat();
    const found = await check([...BEGIN, ...all(0)], [...BEGIN, ...all(1_100)], [...BEGIN, ...all(2_200)]);
    expect(found).toMatchObject({
      checks: [],
      notes: [],
      proof: { hosts: 3_000, logged: 9_000, smallestGapMs: 1_100 },
    });
    const short = await check([...BEGIN, ...all(0)], [...BEGIN, ...all(900)]);
    expect(short.differences[0]!.found).toBe('3000 shorter ones');
  });

  it('are compared by the main server’s clock', async () => {
    const found = await check(
      [...BEGIN, ...asked('a.example', [0])],
      // Its clock is an hour ahead.
      ['process 0 2026-01-01T01:00:00.000Z', 'clock 0 -3600000 4', ...asked('a.example', [1_500])],
    );
    expect(found).toMatchObject({ checks: [], notes: [], proof: { smallestGapMs: 1_500 } });
  });

  it('follow an owner over its objects and processes', async () => {
    const second = ['process 1 2026-01-01T00:00:10.000Z', 'clock 0 0 4', ...asked('a.example', [0, 5_000])];
    const logs = [
      [...BEGIN, ...asked('a.example', [0])],
      [...BEGIN, ...asked('a.example', [2_000]), ...second],
    ];
    const found = await checkEpochs([logs, [[...BEGIN, ...asked('a.example', [15_400])]]]);
    expect(found).toMatchObject({ checks: [SHORT], notes: [], proof: { logged: 5, smallestGapMs: 400 } });
    const inside = await checkEpochs([logs, [[...BEGIN, ...asked('a.example', [6_000])]]]);
    expect(inside).toMatchObject({ checks: [OWNERS], notes: [] });
  });

  it('are of one host at whichever of its names and ports a request went', async () => {
    const one = [...asked('www.a.example:8080', [0]), ...asked('a.example', [300], { n: 1 })];
    expect(await check([...BEGIN, ...one])).toMatchObject({ checks: [SHORT], proof: { hosts: 1 } });
    // A damaged journal may have numbered it again.
    const again = [...asked('a.example', [0]), ...asked('shop.a.example', [300], { n: 1, domain: 4 })];
    expect(await check([...BEGIN, ...again])).toMatchObject({ checks: [SHORT], proof: { hosts: 1 } });
    const two = ['www.a.example:8080', 'shop.a.example'].map((name, i) => [...BEGIN, ...asked(name, [i * 300])]);
    expect(await check(...two)).toMatchObject({ checks: [SHORT], proof: { hosts: 1 } });
  });

  it('are of one host at each port of an IP address', async () => {
    const of = (name: string, ms: number): string[] => [...BEGIN, ...asked(name, [ms])];
    const found = await check(
      of('[2001:db8::1]:8080', 0),
      of('[2001:db8::1]', 300),
      of('[2001:db8::2]', 400),
      of('10.0.0.1:81', 0),
      of('10.0.0.2', 0),
    );
    expect(found).toMatchObject({ checks: [SHORT], proof: { hosts: 4, smallestGapMs: 300 } });
  });

  it('count a robots.txt as any request', async () => {
    const robots = (...times: number[]): string[] => [...BEGIN, ...asked('a.example', times, { purpose: 't' })];
    expect((await check([...robots(0), '> 500 0 p'])).checks).toEqual([SHORT]);
    expect((await check([...robots(0)], [...BEGIN, ...asked('a.example', [500])])).checks).toEqual([SHORT]);
  });

  it.each([
    ['of both', [5_000, 5_000], [SHORT]],
    ['of the one before', [5_000, 1_000], [SHORT]],
    ['of the next one', [1_000, 5_000], [SHORT]],
    ['never below the least of the run', [10, 10], []],
  ])('are due at the longer interval: %s', async (_what, [before, after], checks) => {
    const of = (domain: number, paceMs: number, ms: number): string[] => [
      ...BEGIN,
      // Another host, which no one asks that slowly.
      `pace ${domain + 1} 1000`,
      ...asked('b.example', [ms], { n: 1, domain: domain + 1 }),
      `pace ${domain} ${paceMs}`,
      ...asked('a.example', [ms], { domain }),
    ];
    const found = await check(of(0, before!, 0), of(5, after!, 3_000));
    expect(found).toMatchObject({ checks, proof: { smallestGapMs: 3_000 } });
    const short = await check(of(0, before!, 0), of(5, after!, 900));
    expect(short.differences[0]!.found).toBe('2 shorter ones');
  });

  it('may have any number of a host', async () => {
    const found = await check([
      ...BEGIN,
      `pace 99999999999999 1000`,
      ...asked('a.example', [0], { domain: 99999999999999 }),
    ]);
    expect(found).toMatchObject({ checks: [], proof: { hosts: 1 } });
  });

  it.each([
    ['a number below 0', ['host 0 -1 a.example', '> 0 0 p'], /no domain -1/],
    ['half a number', ['host 0 0.5 a.example', '> 0 0 p'], /no domain 0.5/],
    ['an interval at such a number', ['pace -1 1000', 'host 0 0 a.example', '> 0 0 p'], /no domain -1/],
    ['hosts that it was granted again and never asks', ['again 0', 'again 1', 'again 2'], /more domains than requests/],
    [
      'intervals at hosts that it never asks',
      ['pace 0 1000', 'pace 1 1000', 'pace 2 1000'],
      /more domains than requests/,
    ],
  ])('are damaged with %s', async (_what, lines, fault) => {
    const found = await check([...BEGIN, ...lines]);
    expect(found.checks).toEqual(['every request log of a manifest is whole']);
    expect(found.differences[0]!.examples[0]).toMatch(fault);
  });

  it('have no host that is only named', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `host ${n} ${n} h${n}.example`);
    expect((await check([...BEGIN, ...names, '> 0 7 p'])).proof).toMatchObject({ hosts: 1, logged: 1 });
  });

  it.each(['a..example', 'x:y:z', '%', '-'])('take what is no name for one of its own: %s', async (name) => {
    const found = await check([...BEGIN, ...asked(name, [0, 300]), ...asked('a.example', [400], { n: 1, domain: 1 })]);
    expect(found).toMatchObject({ checks: [SHORT], proof: { hosts: 2 } });
  });

  it('may lack the last requests of a lost instance, which is said', async () => {
    const logs = [[[...BEGIN, ...asked('a.example', [0])]], [[...BEGIN, ...asked('a.example', [60_000])]]];
    const found = await checkEpochs(logs, (slot) => (slot === 0 ? { closedBy: 'main-server', requests: 3 } : {}));
    expect(found).toMatchObject({ checks: [], proof: { unlogged: 2, logged: 2 } });
    expect(found.notes).toEqual([expect.stringMatching(/^not proved: 2 requests in no request log/)]);
  });
});
