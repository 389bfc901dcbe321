/**
 * Whole dry runs at a third-party endpoint: EC2 and S3 are moto's, its mock instances are booted by the
 * sandbox's host, the load balancer is the sandbox's. The rows are real, and nothing is left in moto or on this host.
 */
import { writeFileSync } from 'node:fs';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  findMotoServer,
  type MotoServer,
  sayMotoIsMissing,
  startMotoServer,
} from '../support/endpoints/moto-server.ts';
import { clientsFor } from '../support/sandbox/clients.ts';
import { filesWith, hasText } from '../support/find-text.ts';
import { tempDir } from '../support/temp-dir.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import { gapsOf } from '../support/shop/arrivals.ts';
import { JSON_MAPPING, productIds } from '../support/shop/product.ts';
import { REVIEWS_MAPPING } from '../support/shop/reviews.ts';
import { endOf } from './fleet.ts';
import { expectAllStored } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const IDS = productIds(40);
const byText = (a: string, b: string): number => a.localeCompare(b);
const MOTO = await findMotoServer();
if (MOTO === null) sayMotoIsMissing('whole dry runs at moto');

describe.skipIf(MOTO === null)('a dry run at moto', { timeout: 180_000 }, () => {
  let moto: MotoServer;
  const { shop, fleet, open, crawl } = useStage({ products: 100 });

  beforeAll(async () => {
    moto = await startMotoServer(MOTO!);
    return () => moto.stop();
  });
  beforeEach(() =>
    open(IDS, { aws: { endpoint: moto.endpoint }, run: { deadline: '60s', grace: '30s', min_instances: 2 } }),
  );

  /** Of every run so far, in any state but terminated. */
  async function aliveAtMoto(): Promise<string[]> {
    const clients = clientsFor({ endpoint: moto.endpoint, region: 'ap-northeast-1' });
    try {
      const { Reservations } = await clients.ec2.describeInstances({});
      const instances = Reservations!.flatMap((r) => r.Instances!);
      expect(instances.length).toBeGreaterThanOrEqual(2);
      return instances.filter((i) => i.State?.Name !== 'terminated').map((i) => i.InstanceId!);
    } finally {
      clients.destroy();
    }
  }

  async function expectProvedAndGone(ids: readonly string[] = IDS): Promise<void> {
    await expectTrueRows(fleet, 1, ids);
    await expectPoliteAndGone();
  }

  async function expectPoliteAndGone(): Promise<void> {
    expect((await shop.stats()).minGapMs).toBeGreaterThanOrEqual(200);
    const verified = await fleet.run('verify', '--json');
    expect(verified.exitCode, verified.stdout + verified.stderr).toBe(0);
    expect(await aliveAtMoto()).toEqual([]);
    expect(fleet.leftovers()).toEqual([]);
  }

  it('ends with every row, and reports which service plays which part', { tags: ['nightly'] }, async () => {
    const end = await fleet.dryRun();
    const report = expectAllStored(end, IDS.length, { planned: 2, launched: 2, replaced: 0, terminated: 2 });
    const { exitCode, stderr } = end;
    expect(exitCode).toBe(0);
    expect(stderr).toContain(`EC2 and S3: moto at ${moto.endpoint}`);
    expect(stderr).toContain("the sandbox's host boots each of them here");
    expect(stderr).toContain("ELBv2: the sandbox's balancer");
    // Each instance crawls from an address of its own, which moto does not know.
    expect(new Set(withoutSlowBoots(report).shards.map((s) => s.address)).size).toBe(2);
    await expectProvedAndGone();
  });

  it('asks a search by POST for each product', { tags: ['nightly'] }, async () => {
    const fields = Object.fromEntries(
      Object.entries(JSON_MAPPING.fields).map(([name, field]) => {
        return [name, { ...field, jsonpath: field.jsonpath.replace('$', '$.hits[0]') }];
      }),
    );
    await open(IDS, {
      aws: { endpoint: moto.endpoint },
      site: {
        product_url: `${shop.url}/search`,
        request: { method: 'POST', reads_only: true, body: { query: '{id}', size: 1 } },
        mapping: { fields },
      },
      run: { deadline: '60s', grace: '30s', min_instances: 2 },
    });
    expectAllStored(await fleet.dryRun(), IDS.length);
    const asked = (await shop.log()).filter(({ kind }) => kind === 'page');
    expect(asked.map(({ method, path, body }) => `${method} ${path} ${body}`).toSorted(byText)).toEqual(
      IDS.map((id) => `POST /search ${JSON.stringify({ query: id, size: 1 })}`),
    );
    await expectProvedAndGone();
  });

  it('reads reviews at URLs of their own, without the pages that are forbidden', { tags: ['nightly'] }, async () => {
    await shop.setRobots('User-agent: *\nDisallow: /reviews/*?page=\n');
    await open(IDS, {
      aws: { endpoint: moto.endpoint },
      site: {
        product_url: undefined,
        hosts: [shop.url],
        mapping: REVIEWS_MAPPING,
        pages_per_product: { mean: 2, max: 3 },
      },
      products: { query: `select id, '${shop.url}/reviews/' || id as url from products` },
      run: { deadline: '60s', grace: '30s', min_instances: 2 },
    });
    const { furtherPages } = expectAllStored(await fleet.dryRun(), IDS.length);
    const asked = (await shop.log()).filter(({ kind }) => kind === 'page').map(({ path }) => path);
    expect(asked.toSorted(byText)).toEqual(IDS.map((id) => `/reviews/${id}`));
    const forbidden = furtherPages?.leftOut.robots?.products ?? 0;
    expect(forbidden).toBeGreaterThan(0);
    expect(furtherPages?.partial.products).toBe(forbidden);
    await expectPoliteAndGone();
  });

  it('is slowed by its operator: the shop gets that pace', { tags: ['nightly'] }, async () => {
    const ids = productIds(100);
    await fleet.addProducts(ids.slice(IDS.length));
    const run = await crawl(6, '--deadline', '120s');
    expect((await fleet.run('pace', '--interval', '1s')).exitCode).toBe(0);
    // The main server reads the run's row, and every instance sends a heartbeat.
    const fromMs = Date.now() + 4_000;
    expectAllStored(await endOf(run), ids.length);
    const slow = (await shop.log()).filter(({ kind, wallMs }) => kind === 'page' && wallMs >= fromMs);
    expect(gapsOf(slow).length).toBeGreaterThan(4);
    expect(Math.min(...gapsOf(slow))).toBeGreaterThanOrEqual(1_000);
    await expectProvedAndGone(ids);
  });

  it('sends headers and secrets of its user, and the secret is nowhere else', { tags: ['nightly'] }, async () => {
    const secret = 'marked-key-of-moto-61c4';
    const elsewhere = tempDir('crawlfleet-secret-');
    try {
      writeFileSync(elsewhere.file('key'), secret);
      await open(IDS, {
        site: { language: 'de', headers: { 'X-Key': `\${file:${elsewhere.file('key')}}` } },
        aws: { endpoint: moto.endpoint },
        run: { deadline: '60s', grace: '30s', min_instances: 2 },
      });
      const end = await fleet.dryRun();
      expectAllStored(end, IDS.length);
      for (const { kind, headers } of await shop.log())
        expect([headers['x-key'], headers['accept-language']]).toEqual(
          kind === 'page' ? [secret, 'de'] : [undefined, undefined],
        );
      expect(filesWith(fleet.dir, [secret])).toEqual([]);
      const clients = clientsFor({ endpoint: moto.endpoint, region: 'ap-northeast-1' });
      const { Contents = [] } = await clients.s3.listObjectsV2({ Bucket: 'crawlfleet' });
      expect(Contents.length).toBeGreaterThan(3);
      for (const { Key } of Contents) {
        const { Body } = await clients.s3.getObject({ Bucket: 'crawlfleet', Key: Key! });
        expect([Key, hasText(await Body!.transformToByteArray(), secret)]).toEqual([Key, false]);
      }
      clients.destroy();
      await expectProvedAndGone();
    } finally {
      elsewhere.remove();
    }
  });

  it(
    'boots no machine twice when the stand-in is killed: its instances are replaced',
    { tags: ['nightly'] },
    async () => {
      const run = await crawl(6, '--deadline', '90s');
      const standIn = fleet.leftovers().find(({ command }) => command.includes(`--stand-in-for ${moto.endpoint}`));
      process.kill(standIn!.pid, 'SIGKILL');
      const end = await endOf(run);
      const report = expectAllStored(end, IDS.length);
      expect(report.instances.launched).toBeGreaterThan(2);
      expect(end.stderr).toContain('another one takes its place');
      await expectProvedAndGone();
    },
  );
});
