/** What has become of the hosts of a run. */
import { expect, it } from 'vitest';
import { hostGapMs } from '../../../../shared/domain/host-policy.ts';
import {
  at,
  bound,
  createInstance,
  createRun,
  failed,
  gone,
  keepingGrants,
  load,
  NOW,
  onEveryEngine,
  stored,
} from './harness.ts';

const INTERVAL_MS = 15_000;

onEveryEngine('Hosts of a run', (bench, engine) => {
  it('are done, given up by the reason of most of their records, or open, the longest first', async () => {
    // In the table of all runs of the database: of no other test.
    const name = (host: string): string => `${host}-of-${engine}.example`;
    const hosts = ['done', 'done', 'gone', 'lost', 'lost', 'lost', 'slow', 'slow', 'rest', 'long', 'long', 'long'];
    const urls = [...hosts.map((host, i) => `https://www.${name(host)}/${i + 1}`), 'about:blank'];
    // Returned records of a host may be anywhere in the list.
    urls.push(`http://${name('done')}:8080/14`);
    const ids = urls.map((_, i) => `p${i + 1}`);
    const chunks = [{ index: 1, first: 1, last: urls.length, hosts: { sliceOf: null, leftMs: 5_000 } }];
    const settings = { ...keepingGrants(`run_hosts_${engine}`), site: { productUrl: [], intervalMs: INTERVAL_MS } };
    const byId = new Map(urls.map((url, i) => [`p${i + 1}`, url]));
    const { id } = await createRun(bench(), ids, { settings: settings as never, urls: byId, chunks });
    const { work } = bound(bench(), id);
    const asker = { nowMs: NOW, intervalMs: INTERVAL_MS, most: 2 };
    expect(await work.hosts(asker)).toMatchObject({ done: 0, givenUp: {}, open: 6, resting: null });
    await createInstance(bench(), id, 0);
    await work.grant(at(0), ['1-1'], 9);
    // What instances call a record: in memory there are no URLs beside the IDs of a simulation.
    const inOrder = (n: number): string => (engine === 'memory' ? ids[n - 1]! : urls[n - 1]!);
    await load(bench(), id, [
      stored(1, inOrder(1)),
      failed(2, 'HTTP 500', inOrder(2)),
      gone(3, inOrder(3)),
      failed(4, 'HTTP 500', inOrder(4)),
      { ...failed(5, 'not now', inOrder(5)), reason: 'network' } as never,
      { ...failed(6, 'not now', inOrder(6)), reason: 'network' } as never,
      failed(7, 'HTTP 500', inOrder(7)),
      { ...failed(13, 'no URL', inOrder(13)), reason: 'redirect' } as never,
      stored(14, inOrder(14)),
    ]);
    await work.noteHosts(at(0), [
      { host: name('slow'), delayMs: 600_000 },
      { host: name('rest'), notBeforeMs: NOW + 90_000 },
    ]);
    const gapMs = Math.ceil(hostGapMs(INTERVAL_MS, 0));
    const slowMs = Math.ceil(hostGapMs(INTERVAL_MS, 600_000));
    const rest = { host: name('rest'), open: 1, gapMs, untilMs: NOW + 90_000 };
    const long = { host: name('long'), open: 3, gapMs, untilMs: NOW + 2 * gapMs };
    const slow = { host: name('slow'), open: 1, gapMs: slowMs, untilMs: NOW };
    const counts = { done: 2, givenUp: { network: 1 }, open: 3 };
    expect(await work.hosts(asker)).toEqual({
      ...counts,
      resting: { hosts: 1, untilMs: NOW + 90_000 },
      longest: [rest, long],
    });
    expect(await work.hosts({ ...asker, nowMs: NOW + 90_000, most: 9 })).toEqual({
      ...counts,
      resting: null,
      longest: [
        { ...long, untilMs: NOW + 90_000 + 2 * gapMs },
        { ...rest, untilMs: NOW + 90_000 },
        { ...slow, untilMs: NOW + 90_000 },
      ],
    });
    await work.failRest('deadline');
    // Of as many failures of two reasons the first in the alphabet.
    const givenUp = { network: 1, deadline: 3 };
    expect(await work.hosts(asker)).toEqual({ done: 2, givenUp, open: 0, resting: null, longest: [] });
  });
});
