/** What an operator asks of hosts while an instance crawls them: `orchestrator hosts deny` and `pace`. */
import { describe, expect, it } from 'vitest';
import { HostNumbers } from '../../../../crawl-api/queue/host-numbers.ts';
import { QueueState } from '../../../../crawl-api/queue/queue-state.ts';
import { refused } from '../crawl-scene.ts';
import { INTERVAL_MS, openHostScene, rulesOf } from './host-scene.ts';

const page = (host: string, name: number): string => `https://www.${host}/${name}`;
const pages = (host: string, count: number): string[] => Array.from({ length: count }, (_, i) => page(host, i));
const DENIED = 'a.example is denied (orchestrator hosts deny)';

describe('a host that is denied in mid-run', () => {
  it('gets no request more, and its open records fail; others go on', async () => {
    const scene = await openHostScene();
    await scene.give([...pages('a.example', 5), ...pages('b.example', 5)]);
    await scene.run(40_000);
    const before = scene.of('a.example').length;
    await scene.follow({ hosts: [{ host: 'a.example', denied: true }], wishes: 'v1' });
    await scene.run(120_000);
    expect(scene.of('a.example')).toHaveLength(before);
    expect(before).toBeGreaterThan(1);
    const outcomes = Object.entries(scene.outcomes());
    const ends = (host: string): string[] => outcomes.filter(([url]) => url.includes(host)).map(([, end]) => end);
    expect(ends('a.example').filter((end) => end === 'stored')).toHaveLength(before - 1);
    expect(ends('a.example').filter((end) => end === 'redirect')).toHaveLength(6 - before);
    expect(new Set(ends('b.example'))).toEqual(new Set(['stored']));
    const results = scene.journal.records.flatMap((record) => (record.t === 'result' ? record.result : []));
    expect(results.find(({ outcome }) => outcome === 'failed')).toMatchObject({ detail: DENIED });
    expect(scene.queue.wishesHeard).toBe('v1');
  });

  it('fails its records at once, also while it rests for an hour or was never asked', async () => {
    const scene = await openHostScene({ pagesAtOnce: 1, world: () => refused() });
    await scene.give([...pages('a.example', 3), ...pages('b.example', 1)]);
    await scene.follow({ hosts: [{ host: 'a.example', waitMs: 3_600_000 }] });
    await scene.run(30_000);
    await scene.follow({ hosts: [{ host: 'a.example', denied: true }] });
    await scene.run(1_000);
    const ends = pages('a.example', 3).map((url) => scene.outcomes()[url]);
    expect(ends).toEqual(['redirect', 'redirect', 'redirect']);
  });

  it('stays denied over a restart of the process, and is asked again once that is taken back', async () => {
    const first = await openHostScene();
    await first.give(pages('a.example', 5));
    await first.run(40_000);
    await first.follow({ hosts: [{ host: 'a.example', denied: true }] });
    first.stop.abort();
    await first.run(1);
    const { journal, clock } = first;
    const scene = await openHostScene({ journal, clock });
    expect(scene.queue.wishesHeard).toBeUndefined();
    await scene.run(60_000);
    expect(scene.sent).toEqual([]);
    expect(Object.values(scene.outcomes())).toContain('redirect');
    await scene.follow({ hosts: [{ host: 'a.example' }] });
    await scene.give([page('a.example', 7)]);
    await scene.run(60_000);
    expect(scene.outcomes()[page('a.example', 7)]).toBe('stored');
  });

  it('is not asked again by a wish without it, where it has refused this address', async () => {
    const scene = await openHostScene({ world: () => refused(), site: { ban: { coolDownMs: 1_000 } } as never });
    await scene.give(pages('a.example', 4));
    await scene.run(600_000);
    const before = scene.sent.length;
    await scene.follow({ hosts: [{ host: 'a.example' }] });
    await scene.give([page('a.example', 9)]);
    await scene.run(120_000);
    expect(scene.outcomes()[page('a.example', 9)]).toBe('banned');
    expect(scene.sent).toHaveLength(before);
  });
});

describe('a host with a pace of its own in mid-run', () => {
  const gapsAfter = (times: readonly number[], ms: number): number[] =>
    times.flatMap((at, i) => (i > 0 && times[i - 1]! >= ms ? [at - times[i - 1]!] : []));

  it('is asked in it from the next request on, also by the next process, and faster again once it is shorter', async () => {
    const first = await openHostScene();
    await first.give(pages('a.example', 60));
    await first.run(40_000);
    await first.follow({ hosts: [{ host: 'a.example', paceMs: 60_000 }] });
    await first.run(200_000);
    first.stop.abort();
    await first.run(1);
    const scene = await openHostScene({ journal: first.journal, clock: first.clock });
    await scene.run(200_000);
    const before = [...first.of('a.example'), ...scene.of('a.example')].map(([at]) => at);
    expect(before.filter((at) => at > 40).length).toBeGreaterThanOrEqual(5);
    const last = before.findLast((at) => at <= 40)!;
    const slow = gapsAfter(before, last);
    expect(Math.min(...slow)).toBeGreaterThanOrEqual(60);
    expect(Math.max(...slow)).toBeLessThan(140);
    const doneAt = before.at(-1)!;
    await scene.follow({ hosts: [{ host: 'a.example', paceMs: 20_000 }] });
    await scene.run(200_000);
    const faster = gapsAfter(
      scene.of('a.example').map(([at]) => at),
      doneAt + 1,
    );
    expect(Math.min(...faster)).toBeGreaterThanOrEqual(20);
    expect(Math.max(...faster)).toBeLessThan(22);
  });

  it('never gets less than the interval of the run and its Crawl-delay', async () => {
    const scene = await openHostScene({
      rules: (url) => (url.includes('slow') ? rulesOf({ crawlDelayMs: 40_000 }) : undefined),
    });
    await scene.give([...pages('slow.example', 4), ...pages('a.example', 4)]);
    await scene.run(1_000);
    await scene.follow({ hosts: ['slow.example', 'a.example'].map((host) => ({ host, paceMs: 1_000 })) });
    await scene.run(200_000);
    const gaps = (host: string): number[] => {
      const times = scene.of(host).map(([at]) => at);
      return times.slice(1).map((at, i) => at - times[i]!);
    };
    expect(Math.min(...gaps('slow.example'))).toBeGreaterThanOrEqual(40);
    expect(Math.min(...gaps('a.example'))).toBeGreaterThanOrEqual(INTERVAL_MS / 1_000);
  });

  it('is no Crawl-delay that the main server would keep', async () => {
    const scene = await openHostScene({ world: () => refused(), isMute: true });
    scene.beat();
    await scene.give(pages('a.example', 2), { hosts: [{ host: 'a.example', paceMs: 60_000 }] });
    await scene.run(200_000);
    expect(scene.beat()).toMatchObject([{ host: 'a.example', delayMs: 0 }]);
  });
});

describe('what is asked of hosts that an instance does not have', () => {
  it('is ignored without a number, and the journal gives the same numbers again', async () => {
    const scene = await openHostScene();
    const hosts = [
      { host: 'foreign.example', denied: true as const },
      { host: 'a.example', paceMs: 60_000 },
      { host: 'also-foreign.example', paceMs: 60_000 },
    ];
    // With a grant: the note of what is granted counts, the others are foreign still.
    await scene.give(pages('a.example', 2), { hosts, wishes: 'v1' });
    await scene.follow({ hosts: [{ host: 'other.example', denied: true }], wishes: 'v2' });
    await scene.give(pages('b.example', 2));
    await scene.run(1_000);
    const { state } = scene.queue;
    const numbersIn = (of: QueueState): (number | undefined)[] =>
      ['a.example', 'b.example', 'foreign.example', 'also-foreign.example', 'other.example'].map((host) =>
        of.numbers.find?.(host),
      );
    expect(numbersIn(state)).toEqual([0, 1, undefined, undefined, undefined]);
    expect(state.domains.at(0).paceMs).toBe(60_000);
    expect(scene.queue.wishesHeard).toBe('v2');
    const notes = scene.journal.records.filter(({ t }) => t === 'host-notes');
    expect(notes).toEqual([{ t: 'host-notes', notes: [{ host: 'a.example', paceMs: 60_000 }] }]);
    const replayed = new QueueState(new HostNumbers());
    for (const record of scene.journal.records) replayed.apply(record);
    expect(numbersIn(replayed)).toEqual(numbersIn(state));
  });
});
