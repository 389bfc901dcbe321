/** A run over many hosts, against a world with a ledger of its own. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HostSpec, expectedPage, pathsOf } from '../support/sites/host-spec.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { type HostStage, openHostStage } from './host-fleet.ts';

const INTERVAL_MS = 500;

const many = (count: number, of: (i: number) => HostSpec): HostSpec[] => Array.from({ length: count }, (_, i) => of(i));

const HOSTS: readonly HostSpec[] = [
  ...many(40, (i) => ({ name: `ok${i}.test`, pages: 1 + (i % 3) })),
  { name: 'long.test', pages: 30 },
  { name: 'www.names.test', pages: 2 },
  { name: 'shop.names.test', pages: 2 },
  { name: 'slow-pace.test', pages: 4, crawlDelay: 3 },
  { name: 'closed.test', pages: 2, robots: { text: 'User-agent: *\nDisallow: /p/1\n' } },
  { name: 'broken-rules.test', pages: 2, robots: { status: 503 } },
  { name: 'huge-rules.test', pages: 1, robots: { bytes: 50_000_000 } },
  ...many(5, (i) => ({ name: `silent${i}.test`, pages: 2, behaviour: 'silent', robots: 'silent' })),
  ...many(3, (i) => ({ name: `refused${i}.test`, pages: 1, behaviour: 'refused' })),
  ...many(3, (i) => ({ name: `unknown${i}.test`, pages: 1, behaviour: 'nxdomain' })),
  { name: 'ban.test', pages: 6, behaviour: { ban: { afterPages: 2, forMs: 600_000 } } },
  { name: 'too-many.test', pages: 6, behaviour: { tooMany: { afterPages: 2, forMs: 600_000, retryAfterSeconds: 5 } } },
  { name: 'sales.test', pages: 1 },
  ...many(5, (i) => ({
    name: `moved${i}.test`,
    pages: 1,
    behaviour: { redirectTo: 'http://sales.test:{port}/p/1' },
  })),
  // A company has a new name, and nobody has told the list.
  ...many(4, (i) => ({
    name: `renamed${i}.test`,
    pages: 2,
    robots: { redirectTo: `http://now${i}.test:{port}/robots.txt` },
    behaviour: { redirectTo: `http://now${i}.test:{port}{path}` },
  })),
  { name: 'elsewhere.test', pages: 3, robots: { redirectTo: 'http://rules.test:{port}/robots.txt' } },
  ...many(25, (i) => ({
    name: `parked${i}.test`,
    pages: 1,
    behaviour: { redirectTo: 'http://parking.test:{port}/p/1' },
  })),
  { name: 'there.test', pages: 1, behaviour: { redirectTo: 'http://back.test:{port}/p/1' } },
  { name: 'shared0.test', pages: 1 },
  ...many(4, (i) => ({ name: `shared${i + 1}.test`, pages: 1, sharesAddressOf: 'shared0.test' })),
  { name: 'metadata.test', pages: 1, address: '169.254.169.254' },
];

/** Hosts that the list does not name. */
const UNLISTED: readonly HostSpec[] = [
  ...many(4, (i) => ({ name: `now${i}.test`, pages: 2 })),
  { name: 'rules.test', robots: { text: 'User-agent: *\nDisallow: /p/2\n' } },
  { name: 'parking.test' },
  { name: 'back.test', behaviour: { redirectTo: 'http://there.test:{port}/p/1' } },
];

describe('a run over many hosts', () => {
  eachEngineByDay('in the sandbox', (engine) => {
    let stage: HostStage | null;

    beforeEach(async () => {
      stage = await openHostStage({
        hosts: HOSTS,
        unlisted: UNLISTED,
        others: () => [['none', 'ftp://old.example/']],
        engine,
        config: {
          site: { interval: `${INTERVAL_MS}ms`, timeout: '4s', ban: { cool_down: '5s' } },
          run: { deadline: '90s', min_instances: 3 },
        },
      });
    });
    afterEach(() => stage?.close());

    it('asks each host politely, and stores what can be reached', async (context) => {
      if (stage === null) return context.skip('no mount namespace for this user');
      const { world, fleet } = stage;
      const { exitCode, report, stderr } = await fleet.dryRun();
      const ledger = await world.ledger();
      const seen = JSON.stringify(report.reasons);
      expect({ exitCode, seen }, stderr).toEqual({ exitCode: 0, seen });
      expect(ledger.groupsFasterThan(INTERVAL_MS)).toEqual([]);
      expect(ledger.pagesBeforeRobots()).toEqual([]);
      expect(ledger.smallestGapOf('slow-pace.test')).toBeGreaterThanOrEqual(3_000);
      expect(ledger.pagesOf('closed.test').map(({ path }) => path)).toEqual(['/p/2']);
      const items = await fleet.query('select product_id, outcome, reason from crawlfleet_items');
      const ends = new Map(
        items.map((item) => [String(item['product_id']), String(item['reason'] ?? item['outcome'])]),
      );
      const endsOf = (name: string): Record<string, number> => {
        const counts: Record<string, number> = {};
        for (const [id, end] of ends) if (id.startsWith(name)) counts[end] = (counts[end] ?? 0) + 1;
        return counts;
      };
      const rows = await fleet.query('select product_id, title, price from product_snapshots');
      for (const host of HOSTS.filter(({ name }) => /^(ok|long|www|shop|slow|huge|sales|shared)/.test(name)))
        for (const path of pathsOf(host)) {
          const row = rows.find((each) => each['product_id'] === host.name + path);
          expect(row, host.name + path).toMatchObject(expectedPage(host.name, path));
        }
      expect(endsOf('closed')).toEqual({ stored: 1, robots: 1 });
      expect(endsOf('broken-rules')).toEqual({ robots: 2 });
      expect(endsOf('silent')).toEqual({ network: 10 });
      expect(endsOf('refused')).toEqual({ network: 3 });
      expect(endsOf('unknown')).toEqual({ network: 3 });
      expect(endsOf('metadata')).toEqual({ network: 1 });
      expect(endsOf('moved')).toEqual({ stored: 5 });
      expect(endsOf('renamed')).toEqual({ stored: 8 });
      for (const i of [0, 1, 2, 3]) {
        const row = rows.find((each) => each['product_id'] === `renamed${i}.test/p/2`);
        expect(row).toMatchObject(expectedPage(`now${i}.test`, '/p/2'));
      }
      expect(endsOf('elsewhere')).toEqual({ stored: 2, robots: 1 });
      expect(new Set(ledger.pagesOf('elsewhere.test').map(({ path }) => path))).toEqual(new Set(['/p/1', '/p/3']));
      expect(ledger.pagesOf('rules.test')).toEqual([]);
      expect(endsOf('parked')).toEqual({ redirect: 25 });
      expect(ledger.pagesOf('parking.test').length).toBeLessThan(20);
      expect(endsOf('there')).toEqual({ redirect: 1 });
      expect(endsOf('none')).toEqual({ redirect: 1 });
      expect(endsOf('ban')).toEqual({ stored: 2, banned: 4 });
      expect(endsOf('too-many')).toEqual({ stored: 2, banned: 4 });
      // To be sure one request more, and one after the rest; after a 429 only that.
      expect(ledger.pagesOf('ban.test').filter(({ status }) => status === 403).length).toBeLessThanOrEqual(3);
      expect(ledger.pagesOf('too-many.test').filter(({ status }) => status === 429)).toHaveLength(2);
      const shared = world.addressOf('shared0.test')!;
      for (const from of new Set(ledger.requests.map((request) => request.from))) {
        expect(ledger.mostUnderWayAt(shared, from)).toBeLessThanOrEqual(1);
        expect(ledger.smallestGapAt(shared, from) ?? 1_000).toBeGreaterThanOrEqual(1_000);
      }
      const verified = await fleet.run('verify', '--json');
      expect(verified.exitCode, verified.stdout).toBe(0);
      for (const name of ['long.test', 'names.test', 'slow-pace.test'])
        expect(ledger.sourcesOf(name), name).toHaveLength(1);
    });
  });
});
