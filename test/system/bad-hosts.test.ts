/** A run over many hosts that are as bad as hosts can be: spellings, origins, redirects, robots.txt and replies. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { expectedPage, type HostSpec, pathsOf } from '../support/sites/host-spec.ts';
import { type HostStage, openHostStage } from './host-fleet.ts';

const INTERVAL_MS = 400;
const TIMEOUT_MS = 3_000;

const reply = (status: string, ...headers: string[]): string => `HTTP/1.1 ${[status, ...headers].join('\r\n')}\r\n\r\n`;
const PAGE = '<h1>Half a page</h1><p class="price" data-value="100">100</p>';

/** Each with records of the list, and how these end. */
const LISTED: readonly (HostSpec & { ends: string })[] = [
  { name: 'escaped.test', ends: 'redirect', behaviour: { raw: reply('302 Found', 'Location: javascript:alert(1)') } },
  { name: 'nowhere.test', ends: 'redirect', behaviour: { raw: reply('302 Found') } },
  {
    name: 'schemeless.test',
    ends: 'stored',
    behaviour: { raw: reply('301 Moved', 'Location: //target.test:{port}/p/1') },
  },
  { name: 'itself.test', ends: 'redirect', behaviour: { redirectTo: '{path}' } },
  {
    name: 'cookie-wall.test',
    ends: 'redirect',
    behaviour: { raw: reply('302 Found', 'Location: {path}', 'Set-Cookie: seen=1; Path=/') },
  },
  { name: 'ring.test', ends: 'redirect', behaviour: { redirectTo: 'http://www.ring.test:{port}{path}' } },
  { name: 'tls-only.test', ends: 'robots', behaviour: { redirectTo: 'https://tls-only.test:{port}{path}' } },
  { name: 'to-private.test', ends: 'network', behaviour: { redirectTo: 'http://10.0.0.5:{port}/' } },
  { name: 'to-metadata.test', ends: 'network', behaviour: { redirectTo: 'http://169.254.169.254/latest/' } },
  { name: 'to-name.test', ends: 'network', behaviour: { redirectTo: 'http://metadata.test:{port}/' } },
  { name: 'metadata.test', ends: 'network', address: '169.254.169.254' },
  { name: 'closes.test', ends: 'network', behaviour: { raw: '' } },
  { name: 'garbage.test', ends: 'network', behaviour: { raw: '\u0000\u0001\u0002 no HTTP at all' } },
  {
    name: 'short.test',
    ends: 'network',
    behaviour: { raw: `${reply('200 OK', 'Content-Type: text/html', 'Content-Length: 5000')}${PAGE}` },
  },
  {
    name: 'long.test',
    ends: 'stored',
    behaviour: {
      raw: `${reply('200 OK', 'Content-Type: text/html', `Content-Length: ${PAGE.length}`)}${PAGE} and more`,
    },
  },
  { name: 'huge.test', ends: 'too-large', behaviour: { hugeBytes: 10_000_000 } },
  { name: 'late.test', ends: 'stored', behaviour: { slowMs: TIMEOUT_MS / 3 } },
  { name: 'too-late.test', ends: 'timeout', behaviour: { slowMs: TIMEOUT_MS * 2 } },
  { name: 'packed-rules.test', ends: 'stored', robots: { bytes: 50_000_000, packed: true } },
  { name: 'dripping-rules.test', ends: 'network', robots: { text: 'User-agent: *\nDisallow: /x\n', drips: true } },
  { name: 'waking-rules.test', ends: 'stored', robots: { text: 'User-agent: *\nDisallow: /x\n', refuses: 2 } },
  { name: 'circular-rules.test', ends: 'stored', robots: { redirectTo: '/robots.txt' } },
  {
    name: 'odd-delay.test',
    pages: 3,
    ends: 'stored',
    robots: { text: 'User-agent: *\nCrawl-delay: 1.5\nCrawl-delay: soon\n' },
  },
  {
    name: 'no-delay.test',
    pages: 3,
    ends: 'stored',
    robots: { text: 'User-agent: *\nCrawl-delay: -5\nCrawl-delay: 1e9\n' },
  },
  { name: 'day.test', pages: 3, ends: 'robots', crawlDelay: 86_400 },
  { name: 'ages.test', pages: 3, ends: 'robots', crawlDelay: 999_999_999 },
  { name: '-a-.spelled.test', ends: 'stored' },
  { name: 'b$.spelled.test', ends: 'stored' },
  { name: 'www.xn--bcher-kva.test', ends: 'stored' },
  { name: 'www.mixed.test', ends: 'stored' },
  { name: 'dead.group.test', pages: 2, ends: 'network', behaviour: 'nxdomain' },
  { name: 'mute.group.test', pages: 2, ends: 'network', behaviour: 'silent' },
  { name: 'www.group.test', pages: 8, ends: 'stored' },
];

const UNLISTED: readonly HostSpec[] = [
  { name: 'target.test' },
  { name: 'www.ring.test', behaviour: { redirectTo: 'http://ring.test:{port}{path}' } },
];

/** Other spellings of URLs, and how they end. */
const SPELLED: readonly (readonly [url: string, end: string])[] = [
  ['http://WWW.Mixed.TEST:{port}/p/1', 'stored'],
  ['http://www.mixed.test.:{port}/p/1', 'stored'],
  ['http://www.mixed.test:{port}/p/1#reviews', 'stored'],
  ['http://www.mixed.test:{port}/./x/../p/1', 'stored'],
  ['https://www.mixed.test:{port}/p/1', 'network'],
  ['http://www.b\u00FCcher.test:{port}/p/1', 'stored'],
  ['http://0x7f.1:{port}/', 'network'],
  ['http://2130706433:{port}/', 'network'],
  ['http://[::1]:{port}/', 'network'],
  ['http://[::ffff:a9fe:a9fe]/', 'network'],
  ['http://user:secret@www.mixed.test:{port}/p/1', 'redirect'],
  ['http://www.mixed.test:99999/', 'redirect'],
  ['http:///', 'redirect'],
  ['javascript:alert(1)', 'redirect'],
  ['www.mixed.test/p/1', 'redirect'],
];

describe('a run over bad hosts', () => {
  let stage: HostStage | null;

  beforeEach(async () => {
    stage = await openHostStage({
      hosts: LISTED,
      unlisted: UNLISTED,
      others: (world) => SPELLED.map(([url], i) => [`spelled ${i}`, url.replace('{port}', String(world.port))]),
      engine: 'sqlite',
      config: {
        site: { interval: `${INTERVAL_MS}ms`, timeout: `${TIMEOUT_MS}ms`, ban: { cool_down: '5s' } },
        run: { deadline: '90s', min_instances: 2 },
      },
    });
  });
  afterEach(async () => {
    await stage?.close();
  });

  it('asks each politely, and ends each record once', { tags: ['nightly'] }, async (context) => {
    if (stage === null) return context.skip('no mount namespace for this user');
    const { world, fleet } = stage;
    const { exitCode, report } = await fleet.dryRun();
    const ledger = await world.ledger();
    const items = await fleet.query('select product_id, outcome, reason from crawlfleet_items');
    const ends = Object.fromEntries(
      items.map((item) => [String(item['product_id']), String(item['reason'] ?? item['outcome'])]),
    );
    const listed = LISTED.flatMap((host) => pathsOf(host).map((path) => [host.name + path, host.ends]));
    const spelled = SPELLED.map(([, end], i) => [`spelled ${i}`, end]);
    expect(ends).toEqual(Object.fromEntries([...listed, ...spelled]));
    // No record waits for the deadline.
    expect({ exitCode, onTime: report.onTime }).toEqual({ exitCode: 0, onTime: true });
    expect(ledger.groupsFasterThan(INTERVAL_MS)).toEqual([]);
    expect(ledger.pagesBeforeRobots()).toEqual([]);
    expect(ledger.smallestGapOf('odd-delay.test')).toBeGreaterThanOrEqual(1_500);
    const rows = await fleet.query('select product_id, title, price from product_snapshots');
    expect(rows.find((row) => row['product_id'] === 'schemeless.test/p/1')).toMatchObject(
      expectedPage('target.test', '/p/1'),
    );
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
    // All spellings of a name are one host, and nothing is sent to an address that is not the site's.
    expect(ledger.pagesOf('day.test')).toEqual([]);
    expect(ledger.requestsOf('dead.group.test')).toEqual([]);
    expect(ledger.requestsOf('mute.group.test')).toHaveLength(4);
    for (const name of ['metadata.test', '127.0.0.1', '10.0.0.5', '169.254.169.254'])
      expect(ledger.requestsOf(name), name).toEqual([]);
    // Those of its group that answer do not wait for the others.
    const lastRight = Math.max(...ledger.pagesOf('www.group.test').map(({ atMs }) => atMs));
    expect(lastRight).toBeLessThan(ledger.requestsOf('mute.group.test').at(-1)!.atMs);
    for (const group of ['mixed.test', 'spelled.test', 'xn--bcher-kva.test', 'group.test'])
      expect(ledger.sourcesOf(group), group).toHaveLength(1);
  });
});
