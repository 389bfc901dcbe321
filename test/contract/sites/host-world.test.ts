/** The world of many hosts for tests of a crawl: its hosts do what they are said to do, and its ledger is right. */
import { readFileSync } from 'node:fs';
import http, { type IncomingHttpHeaders } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMapping } from '../../../orchestrator/core/config/read-mapping.ts';
import { extractBy } from '../../unit/crawl-api/extract-page.ts';
import { runCommand, waitFor } from '../../support/processes.ts';
import { HostLedger, type HostRequest } from '../../support/sites/host-ledger.ts';
import { expectedPage, HOST_MAPPING, type HostSpec } from '../../support/sites/host-spec.ts';
import { type HostWorld, openHostWorld } from '../../support/sites/host-world.ts';
import { underHostsFile } from '../../support/sites/under-hosts-file.ts';

const HUGE = 10_000_000;
const REFUSED_MS = 600_000;

const HOSTS: HostSpec[] = [
  { name: 'www.shop-1.test', pages: 3, crawlDelay: 20 },
  { name: 'img.shop-1.test', pages: ['/a/tea?x=1'], sharesAddressOf: 'www.shop-1.test' },
  { name: 'rules.test', robots: { text: 'User-agent: *\nDisallow: /p/\n' } },
  { name: 'broken.test', robots: { status: 503 } },
  { name: 'moved.test', robots: { redirectTo: 'http://rules.test:{port}{path}' }, behaviour: { slowMs: 1 } },
  { name: 'long.test', robots: { bytes: 700_000, text: 'User-agent: *\nDisallow: /x\n' } },
  { name: 'mute.test', behaviour: 'silent' },
  { name: 'half.test', robots: 'silent' },
  { name: 'gone.test', behaviour: 'refused' },
  { name: 'none.test', behaviour: 'nxdomain' },
  { name: 'ban.test', pages: 9, behaviour: { ban: { afterPages: 2, forMs: REFUSED_MS } } },
  {
    name: 'busy.test',
    pages: 9,
    behaviour: { tooMany: { afterPages: 1, forMs: REFUSED_MS, retryAfterSeconds: 7 } },
  },
  { name: 'away.test', behaviour: { redirectTo: 'http://rules.test:{port}{path}' } },
  { name: 'huge.test', behaviour: { hugeBytes: HUGE } },
  { name: 'inside.test', address: '169.254.169.254' },
];

let world: HostWorld;
beforeAll(async () => {
  world = await openHostWorld({ hosts: HOSTS });
});
afterAll(() => world.close());

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Asks as a crawl does: connects to the address, and names the host. */
function ask(name: string, path = '/p/1', signal?: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.get(
      {
        host: world.addressOf(name)!,
        port: world.port,
        path,
        headers: { host: `${name}:${world.port}`, 'user-agent': 'a-test' },
        agent: false,
        ...(signal && { signal }),
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }));
        response.on('error', reject);
      },
    );
    request.on('error', reject);
  });
}

describe('a world of hosts', () => {
  it('serves the pages and the robots.txt of each name', async () => {
    const { status, body } = await ask('www.shop-1.test', '/p/3');
    const { rows } = await extractBy(readMapping(HOST_MAPPING).mapping, body);
    expect([status, rows?.[0]?.row]).toEqual([200, expectedPage('www.shop-1.test', '/p/3')]);
    expect((await ask('img.shop-1.test', '/a/tea?x=1')).body).toContain('of img.shop-1.test');
    expect((await ask('img.shop-1.test', '/p/1')).status).toBe(404);
    expect((await ask('www.shop-1.test', '/robots.txt')).body).toBe('User-agent: *\nCrawl-delay: 20\nDisallow:\n');
    expect((await ask('rules.test', '/robots.txt')).body).toContain('Disallow: /p/');
    expect((await ask('broken.test', '/robots.txt')).status).toBe(503);
    expect((await ask('moved.test', '/robots.txt')).headers.location).toBe(world.url('rules.test', '/robots.txt'));
    expect((await ask('moved.test')).status).toBe(200);
    const long = (await ask('long.test', '/robots.txt')).body;
    expect([long.length, long.slice(0, 26)]).toEqual([700_000, 'User-agent: *\nDisallow: /x']);
  });

  it('has an address for each name, but where names share one', () => {
    const addresses = HOSTS.flatMap(({ name }) => world.addressOf(name) ?? []);
    expect(addresses).toHaveLength(HOSTS.length - 1);
    expect(new Set(addresses).size).toBe(HOSTS.length - 2);
    expect(world.addressOf('none.test')).toBe(null);
    expect(world.addressOf('inside.test')).toBe('169.254.169.254');
    for (const address of addresses) expect(address).toMatch(/^127\.\d+\.1\.\d+$|^169\.254\.169\.254$/);
  });

  it('misbehaves as it is told', async () => {
    for (const [name, path] of [
      ['mute.test', '/p/1'],
      ['mute.test', '/robots.txt'],
      ['half.test', '/robots.txt'],
    ] as const) {
      const given = new AbortController();
      const asked = ask(name, path, given.signal);
      const hasArrived = async (): Promise<boolean> =>
        (await world.ledger()).requestsOf(name).some((request) => request.path === path);
      await waitFor(hasArrived, { what: `the request to ${name}` });
      given.abort();
      await expect(asked).rejects.toThrow('aborted');
    }
    await expect(ask('gone.test')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const statuses = async (name: string): Promise<number[]> => {
      const found = [];
      for (const path of ['/p/1', '/p/2', '/p/3', '/robots.txt']) found.push((await ask(name, path)).status);
      return found;
    };
    expect(await statuses('ban.test')).toEqual([200, 200, 403, 403]);
    expect(await statuses('busy.test')).toEqual([200, 429, 429, 429]);
    expect((await ask('busy.test')).headers['retry-after']).toBe('7');
    expect(await ask('away.test')).toMatchObject({ status: 302, headers: { location: world.url('rules.test') } });
    expect((await ask('huge.test')).body).toHaveLength(HUGE - 2);

    await world.change('ban.test', { behaviour: 'ok' });
    expect(await statuses('ban.test')).toEqual([200, 200, 200, 200]);
  });

  it('records who asked for what, and when', async () => {
    const beforeMs = await world.nowMs();
    await ask('rules.test', '/p/1?seen');
    const ledger = await world.ledger();
    const last = ledger.requestsOf('rules.test').at(-1)!;
    expect(last).toMatchObject({
      host: 'rules.test',
      method: 'GET',
      path: '/p/1?seen',
      to: world.addressOf('rules.test'),
      userAgent: 'a-test',
      status: 404,
    });
    expect(last.from).toMatch(/^127\./);
    expect(last.atMs).toBeGreaterThanOrEqual(beforeMs);
    expect(last.atMs).toBeLessThanOrEqual(await world.nowMs());
    expect(Math.abs(last.wallMs - Date.now())).toBeLessThan(60_000);
  });

  it('stands beside another one', async () => {
    const other = await openHostWorld({ hosts: [{ name: 'www.shop-1.test' }] });
    expect(other.addressOf('www.shop-1.test')).not.toBe(world.addressOf('www.shop-1.test'));
    await other.close();
  });

  it('is what the names lead to for a program that is run under its hosts file, and for no other', async () => {
    const before = readFileSync('/etc/hosts', 'utf8');
    const namespace = underHostsFile(world.hostsFile(), world.resolvConf());
    if (namespace === null) {
      console.warn('LEFT OUT: this user may make no mount namespace');
      return;
    }
    const [file, ...args] = namespace.prefix;
    const program = fileURLToPath(new URL('resolve-names.ts', import.meta.url));
    const names = ['www.shop-1.test', 'img.shop-1.test', 'inside.test', 'localhost', 'none.test'];
    const ended = await runCommand(file, [...args, process.execPath, program, ...names]);
    namespace.remove();
    expect(ended.stderr).toBe('');
    const [shop, images, inside, local, none] = JSON.parse(ended.stdout) as unknown[];
    const address = world.addressOf('www.shop-1.test');
    expect([shop, images, inside, local]).toEqual([[address], [address], ['169.254.169.254'], ['127.0.0.1']]);
    // Without its name server the machine's own is asked, if there is one.
    if (world.resolvConf() !== null) expect(none).toBe('ENOTFOUND');
    expect(readFileSync('/etc/hosts', 'utf8')).toBe(before);
  });

  it('refuses what it cannot have', async () => {
    await expect(openHostWorld({ hosts: [{ name: 'a.test', sharesAddressOf: 'b.test' }] })).rejects.toThrow(
      'a.test shares the address of no earlier host',
    );
    await expect(openHostWorld({ hosts: [{ name: 'a.test' }, { name: 'a.test' }] })).rejects.toThrow('there twice');
    await expect(world.change('b.test', {})).rejects.toThrow('the world has no b.test');
  });
});

describe('the ledger of a world', () => {
  const request = (host: string, path: string, [atMs, endMs]: [number, number | null], from = 'a'): HostRequest => ({
    host,
    path,
    atMs,
    endMs,
    from,
    to: host.endsWith('one.test') ? '1' : '2',
    wallMs: 0,
    method: 'GET',
    userAgent: '',
    status: endMs === null ? null : 200,
  });
  const ledger = new HostLedger([
    request('www.one.test', '/robots.txt', [0, 10]),
    request('two.test', '/p/1', [3, 30]),
    request('two.test', '/robots.txt', [5, null]),
    request('www.one.test', '/p/1', [9, 40]),
    request('shop.one.test', '/p/1', [25, 26], 'b'),
    request('www.one.test', '/p/2', [100, null]),
  ]);

  it('knows the gaps of a registrable domain, whatever name and source', () => {
    expect(ledger.groups()).toEqual(['one.test', 'two.test']);
    expect([ledger.smallestGapOf('one.test'), ledger.smallestGapOf('two.test')]).toEqual([9, 2]);
    expect(ledger.smallestGapOf('three.test')).toBe(null);
    expect(ledger.groupsFasterThan(9)).toEqual([{ group: 'two.test', gapMs: 2 }]);
    expect(ledger.sourcesOf('one.test')).toEqual(['a', 'b', 'a']);
  });

  it('knows what was asked for before robots.txt was there', () => {
    const names = (host?: string): string[] =>
      ledger.pagesBeforeRobots(host).map(({ host: name, path }) => name + path);
    expect(names()).toEqual(['two.test/p/1', 'www.one.test/p/1', 'shop.one.test/p/1']);
    expect(names('www.one.test')).toEqual(['www.one.test/p/1']);
    expect(ledger.pagesOf('www.one.test')).toHaveLength(2);
    expect(ledger.robotsOf('www.one.test')).toHaveLength(1);
  });

  it('knows what one address had to bear', () => {
    expect([ledger.mostUnderWayAt('1'), ledger.mostUnderWayAt('2'), ledger.mostUnderWayAt('3')]).toEqual([2, 2, 0]);
    expect(ledger.mostUnderWayAt('1', 'b')).toBe(1);
    expect([ledger.smallestGapAt('1'), ledger.smallestGapAt('1', 'a'), ledger.smallestGapAt('1', 'b')]).toEqual([
      9,
      9,
      null,
    ]);
  });
});
