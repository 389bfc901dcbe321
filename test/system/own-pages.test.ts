/** Records that are completed from pages of their own hosts, one link away. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CONTACT_MAPPING, expectedContact, expectedPage, type HostSpec, pathsOf } from '../support/sites/host-spec.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { type HostStage, openHostStage } from './host-fleet.ts';

const INTERVAL_MS = 500;
const DELAY_MS = 1_500;

const both: Pick<HostSpec, 'links' | 'contacts'> = {
  links: ['/contact', '/imprint'],
  contacts: { '/contact': ['mail'], '/imprint': ['phone'] },
};

const HOSTS: readonly HostSpec[] = [
  ...Array.from({ length: 20 }, (_, i): HostSpec => ({ name: `both${i}.test`, pages: 1 + (i % 2), ...both })),
  { name: 'long.test', pages: 8, ...both },
  { name: 'early.test', links: ['/contact', '/imprint'], contacts: { '/contact': ['mail', 'phone'], '/imprint': [] } },
  { name: 'bare.test' },
  { name: 'dead-link.test', ...both, links: ['/old/contact', '/more/contact', '/contact', '/imprint'] },
  { name: 'empty.test', links: ['/contact', '/imprint'], contacts: { '/contact': [], '/imprint': ['phone'] } },
  { name: 'closed.test', ...both, robots: { text: 'User-agent: *\nDisallow: /imprint\n' } },
  {
    name: 'others.test',
    links: ['both0', 'stranger', 'www.big'].map((name) => `http://${name}.test:{port}/contact`).concat('/p/9'),
  },
  { name: 'www.big.test', pages: 3, ...both },
  { name: 'stranger.test', pages: [], contacts: { '/contact': ['mail'] } },
  { name: 'www.names.test', pages: 2, links: ['http://info.names.test:{port}/contact'] },
  { name: 'info.names.test', pages: [], contacts: { '/contact': ['mail'] }, crawlDelay: DELAY_MS / 1_000 },
  { name: 'www.shut.test', links: ['http://info.shut.test:{port}/contact'] },
  {
    name: 'info.shut.test',
    pages: [],
    contacts: { '/contact': ['mail'] },
    robots: { text: 'User-agent: *\nDisallow: /\n' },
  },
];

/** What a record must have, of which host. */
const found: Record<string, { mail?: string; phone?: string }> = {
  both: { mail: '', phone: '' },
  long: { mail: '', phone: '' },
  early: { mail: '', phone: '' },
  'dead-link': { mail: '', phone: '' },
  empty: { phone: '' },
  closed: { mail: '' },
  names: { mail: 'info.names.test' },
};

function expectedRow({ name }: HostSpec, path: string): Record<string, unknown> {
  const key = name.replace(/^www\.|\d*\.test$/g, '');
  const { mail, phone } = found[key] ?? {};
  return {
    ...expectedPage(name, path),
    mail: mail === undefined ? null : expectedContact(mail || name, 'mail'),
    phone: phone === undefined ? null : expectedContact(phone || name, 'phone'),
  };
}

describe('records with pages of their own hosts', () => {
  eachEngineByDay('in the sandbox', (engine) => {
    let stage: HostStage | null;

    beforeEach(async () => {
      stage = await openHostStage({
        hosts: HOSTS,
        others: (world) => [['unmapped', world.url('bare.test', '/about')]],
        engine,
        config: {
          site: {
            interval: `${INTERVAL_MS}ms`,
            timeout: '4s',
            mapping: CONTACT_MAPPING,
            follow: { depth: 1, hosts: 'own', deny: 'top.txt' },
          },
          run: { deadline: '90s', min_instances: 3, max_failed: '5%' },
        },
      });
      const others = Array.from({ length: 20_000 }, (_, i) => `www${i}.example`);
      if (stage) writeFileSync(join(stage.fleet.dir, 'top.txt'), [...others, 'big.test', '/old/'].join('\n'));
    });
    afterEach(() => stage?.close());

    it('have the values of them, each asked for in the pace and under the rules of its host', async (context) => {
      if (stage === null) return context.skip('no mount namespace for this user');
      const { world, fleet } = stage;
      const plan = await fleet.run('plan', '--dry-run');
      expect(plan.stdout, plan.stderr).toContain(
        'left alone    3 by site.follow.deny, 1 that no section of the mapping reads',
      );
      const { exitCode, report, stderr } = await fleet.dryRun();
      expect({ exitCode, reasons: report.reasons }, stderr).toMatchObject({ exitCode: 0 });
      const ledger = await world.ledger();
      const rows = await fleet.query('select product_id, title, price, mail, phone from product_snapshots');
      for (const host of HOSTS.filter(({ name }) => name !== 'www.big.test'))
        for (const path of pathsOf(host)) {
          const row = rows.find((each) => each['product_id'] === host.name + path);
          expect(row, host.name + path).toMatchObject(expectedRow(host, path));
        }
      expect(ledger.groupsFasterThan(INTERVAL_MS)).toEqual([]);
      expect(ledger.pagesBeforeRobots()).toEqual([]);
      const asked = (name: string): string[] => ledger.pagesOf(name).map(({ path }) => path);
      expect(asked('early.test')).toEqual(['/p/1', '/contact']);
      expect(asked('others.test')).toEqual(['/p/1']);
      expect(asked('closed.test')).toEqual(['/p/1', '/contact']);
      expect(asked('dead-link.test')).toEqual(['/p/1', '/more/contact', '/contact', '/imprint']);
      expect(ledger.requestsOf('www.big.test')).toEqual([]);
      const items = await fleet.query('select product_id, path, reason, detail from crawlfleet_items');
      const endOf = (id: string) => items.find((item) => item['product_id'] === id);
      expect(endOf('www.big.test/p/1')).toMatchObject({
        path: `denied:${world.url('www.big.test', '/p/1')}`,
        reason: 'redirect',
        detail: 'not requested: site.follow.deny has its URL',
      });
      expect(endOf('unmapped')).toMatchObject({
        reason: 'redirect',
        detail: 'not requested: no section of the mapping reads its URL',
      });
      expect(ledger.requestsOf('stranger.test')).toEqual([]);
      expect(ledger.requestsOf('info.shut.test').map(({ path }) => path)).toEqual(['/robots.txt']);
      expect(asked('long.test')).toHaveLength(8 * 3);
      // Its Crawl-delay holds for all names of the host once it is read.
      const names = ledger.requests.filter(({ host }) => host.endsWith('names.test'));
      const read = names.findIndex(({ host }) => host === 'info.names.test');
      const gaps = names.slice(read + 1).map(({ atMs }, i) => atMs - names[read + i]!.atMs);
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(DELAY_MS);
      expect(report.furtherPages?.leftOut).toMatchObject({
        robots: { products: 2, pages: 2 },
        elsewhere: { products: 1, pages: 2 },
        gone: { products: 1, pages: 1 },
      });
      const verified = await fleet.run('verify', '--json');
      expect(verified.exitCode, verified.stdout).toBe(0);
    });
  });
});
