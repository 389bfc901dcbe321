/** Products whose page, or whose robots.txt, is at another host: they go on there, and nobody else asks there. */
import { describe, expect, it } from 'vitest';
import type { RobotsAnswer } from '../../../../shared/adapters/robots-fetcher.ts';
import { fine, results, toElsewhere } from '../crawl-scene.ts';
import { type HostScene, openHostScene, rulesOf } from './host-scene.ts';

const HOUR = 3_600_000;
const MOVED = 'https://new.example/robots.txt';

const toNew = (): RobotsAnswer => ({ kind: 'moved', status: 301, to: MOVED });
const timesOf = (scene: HostScene, host: string): number[] => scene.of(host).map(([at]) => at);
const pathsOf = (scene: HostScene, host: string): string[] => scene.of(host).map(([, path]) => path);
/** Where the product goes on; null where it ends here. */
const moves = ({ journal }: HostScene): unknown[] =>
  results(journal).map((result) => (result.outcome === 'failed' ? (result.moved ?? null) : null));
const smallestGap = (times: readonly number[]): number => Math.min(...times.slice(1).map((at, i) => at - times[i]!));

describe('a page that redirects to another host', () => {
  it('is asked for once, and goes on there', async () => {
    const scene = await openHostScene({ world: () => toElsewhere('https://new.example/1') });
    await scene.give(['https://old.example/1']);
    await scene.run(120_000);
    expect(scene.sent.map(({ url }) => url)).toEqual(['https://old.example/robots.txt', 'https://old.example/1']);
    expect(moves(scene)).toEqual([{ page: 'https://new.example/1' }]);
    expect(scene.queue.state.movedCount).toBe(1);
  });

  it('has no outcome until the main server has the part with it', async () => {
    const scene = await openHostScene({ world: (url) => (url.endsWith('1') ? toElsewhere(MOVED) : fine(url)) });
    await scene.give(['https://old.example/1', 'https://old.example/2', 'https://other.example/1']);
    await scene.run(60_000);
    await scene.queue.cut(10);
    expect(scene.queue.state.movedCount).toBe(2);
    await scene.follow({ partsAck: 0 });
    expect(scene.queue.state.movedCount).toBe(0);
  });

  it.each(['ftp://new.example/', 'https://www.old.example/2', `https://new.example/${'x'.repeat(2_000)}`])(
    'ends here where nothing can be asked there: %s',
    async (to) => {
      const scene = await openHostScene({ world: (url) => (url.endsWith('/1') ? toElsewhere(to) : fine(url)) });
      await scene.give(['https://old.example/1']);
      await scene.run(300_000);
      expect(moves(scene)).toEqual([null]);
    },
  );

  it('ends here where the user wants nothing of that host', async () => {
    const scene = await openHostScene({
      world: () => toElsewhere('https://new.example/1'),
      deny: ['https://new.example/1'],
    });
    await scene.give(['https://old.example/1']);
    await scene.run(60_000);
    expect(moves(scene)).toEqual([null]);
  });

  it('leads a product nowhere that has it as a further page only', async () => {
    const scene = await openHostScene({
      world: (url) =>
        url.endsWith('/more')
          ? toElsewhere('https://new.example/')
          : fine(url, { t: 'x' }, ['https://old.example/more']),
      site: { follow: { depth: 1 } },
    });
    await scene.give(['https://old.example/1']);
    await scene.run(120_000);
    expect(pathsOf(scene, 'old.example')).toEqual(['/robots.txt', '/1', '/more']);
    expect(scene.outcomes()).toEqual({ 'https://old.example/1': 'stored' });
  });
});

describe('a robots.txt that redirects to another host', () => {
  it('is not followed: the products go on with it, without a request', async () => {
    const scene = await openHostScene({ rules: (url) => (url.includes('old.') ? toNew() : undefined) });
    const urls = ['https://old.example/1', 'https://old.example/2'];
    await scene.give(urls);
    await scene.run(60_000);
    expect(scene.sent.map(({ url }) => url)).toEqual(['https://old.example/robots.txt']);
    expect(moves(scene)).toEqual(urls.map((page) => ({ page, robots: MOVED })));
  });

  it('leads nowhere but to another robots.txt', async () => {
    const scene = await openHostScene({ rules: () => ({ kind: 'moved', status: 301, to: 'https://new.example/' }) });
    await scene.give(['https://old.example/1']);
    await scene.run(60_000);
    expect(scene.of('old.example')).toHaveLength(1);
    expect(scene.outcomes()).toEqual({ 'https://old.example/1': 'robots' });
    expect(moves(scene)).toEqual([null]);
  });

  it('is read in the turn of its own host, before the first page, and holds there', async () => {
    const scene = await openHostScene({
      rules: (url) =>
        url === MOVED ? rulesOf({ access: 'rules', rules: [{ allow: false, pattern: '/private' }] }) : undefined,
    });
    await scene.give(['https://new.example/a', 'https://new.example/b']);
    await scene.give(['https://old.example/1', 'https://old.example/private', 'https://old.example/2'], {}, MOVED);
    await scene.run(120_000);
    expect(pathsOf(scene, 'old.example')).toEqual(['/1', '/2']);
    expect(pathsOf(scene, 'new.example')).toEqual(['/robots.txt', '/a', '/b']);
    expect(scene.outcomes()['https://old.example/private']).toBe('robots');
    expect(timesOf(scene, 'old.example')[0]).toBeGreaterThan(timesOf(scene, 'new.example')[0]!);
    expect(smallestGap(timesOf(scene, 'new.example'))).toBeGreaterThanOrEqual(15);
    expect(smallestGap(timesOf(scene, 'old.example'))).toBeGreaterThanOrEqual(15);
  });

  it('is read though nothing else is asked of that host, again each hour, in its pace', async () => {
    const scene = await openHostScene();
    const urls = Array.from({ length: 300 }, (_, i) => `https://old.example/${i}`);
    await scene.give(urls, {}, MOVED);
    await scene.run(HOUR + 300_000);
    expect(pathsOf(scene, 'new.example')).toEqual(['/robots.txt', '/robots.txt']);
    expect(smallestGap(timesOf(scene, 'new.example'))).toBeGreaterThanOrEqual(3_600);
    expect(smallestGap(timesOf(scene, 'old.example'))).toBeGreaterThanOrEqual(15);
    await scene.run(HOUR);
    expect(Object.values(scene.outcomes()).filter((outcome) => outcome === 'stored')).toHaveLength(300);
  });

  it('leads on to a third host', async () => {
    const scene = await openHostScene({
      rules: (url) =>
        url === MOVED ? { kind: 'moved', status: 301, to: 'https://third.example/robots.txt' } : undefined,
    });
    await scene.give(['https://old.example/1'], {}, MOVED);
    await scene.run(60_000);
    expect(scene.sent.map(({ url }) => url)).toEqual([MOVED]);
    expect(moves(scene)).toEqual([{ page: 'https://old.example/1', robots: 'https://third.example/robots.txt' }]);
  });

  it('that cannot be read forbids everything', async () => {
    const scene = await openHostScene({ rules: (url) => (url === MOVED ? 'silence' : undefined) });
    await scene.give(['https://old.example/1', 'https://old.example/2'], {}, MOVED);
    await scene.run(900_000);
    expect(scene.of('old.example')).toEqual([]);
    expect(scene.of('new.example')).toHaveLength(4);
    expect(Object.values(scene.outcomes())).toEqual(['robots', 'robots']);
    expect(scene.queue.state.items.openCount).toBe(0);
  });

  it('waits for the rest of its host', async () => {
    const scene = await openHostScene();
    const hosts = [{ host: 'new.example', waitMs: 300_000 }];
    await scene.give(['https://old.example/1'], { hosts }, MOVED);
    await scene.run(299_000);
    expect(scene.sent).toEqual([]);
    await scene.run(30_000);
    expect(scene.sent.map(({ url }) => url)).toEqual([MOVED, 'https://old.example/1']);
  });

  it('makes products under it begun, once it was asked for', async () => {
    const scene = await openHostScene({ pageMs: 20_000 });
    await scene.give(['https://old.example/1'], {}, MOVED);
    const chunk = scene.queue.state.items.get(1)!.chunk;
    expect(scene.queue.state.isUntouched(chunk)).toBe(true);
    await scene.run(1_000);
    expect(scene.sent.map(({ url }) => url)).toEqual([MOVED]);
    expect(scene.queue.state.isUntouched(chunk)).toBe(false);
  });

  it('is in the request log, which says when a host was granted again', async () => {
    const scene = await openHostScene();
    await scene.give(['https://old.example/1'], {}, MOVED);
    await scene.give(['https://other.example/1', 'https://other.example/2']);
    await scene.run(60_000);
    await scene.give(['https://new.example/1', 'https://new.example/2', 'https://other.example/3']);
    await scene.run(60_000);
    await scene.queue.cutRequests();
    const lines = scene.queue.state.requestLog.cuts.flatMap(({ text }) => text.trim().split('\n'));
    const hosts = lines.filter((line) => line.startsWith('host')).map((line) => line.split(' '));
    const names = new Map(hosts.map(([, n, , name]) => [n, name]));
    const domains = new Map(hosts.map(([, , domain, name]) => [domain, name]));
    const told = lines.flatMap((line) => {
      const [mark, a, b] = line.split(' ');
      if (mark === '>') return [names.get(b)];
      return mark === 'again' ? [`again ${domains.get(a)}`] : [];
    });
    const toldOf = (host: string): unknown[] => told.filter((line) => line?.includes(host));
    // Its robots.txt for the old name; then it is another grant, and read again with two pages.
    expect(toldOf('new.')).toEqual([
      'new.example',
      'again new.example',
      ...Array.from({ length: 3 }, () => 'new.example'),
    ]);
    expect(toldOf('other.').slice(3)).toEqual(['again other.example', 'other.example', 'other.example']);
    expect(told).not.toContain('again old.example');
  });

  it('is known after the process has died', async () => {
    const before = await openHostScene();
    await before.give(['https://old.example/1', 'https://old.example/2'], {}, MOVED);
    await before.run(10_000);
    before.stop.abort();
    await before.run(1_000);
    const after = await openHostScene({ journal: before.journal, clock: before.clock });
    await after.run(60_000);
    expect(after.sent.map(({ url }) => url)).toEqual(['https://old.example/2']);
  });
});
