/** `site.request`: products of a shop that has them by GraphQL, by a search and by a form, all of them POST. */
import { writeFileSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Arrival } from '../support/shop/arrivals.ts';
import { expectedRow, JSON_MAPPING, productIds, SHOP_MAPPING, STRANGE_IDS } from '../support/shop/product.ts';
import { type Config, endOf } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';

const SEED = 1;
const MANY = 120;
const IDS = [...productIds(14), ...STRANGE_IDS.filter((id) => id.length < 400)];

const QUERY = 'query Product($id: ID!) { product(id: $id) { product {id} related { id } } }';
/** The fields of a product at this place in the answer. */
const mappingAt = (place: string): object => ({
  fields: Object.fromEntries(
    Object.entries(JSON_MAPPING.fields).map(([name, field]) => [
      name,
      { ...field, jsonpath: field.jsonpath.replace('$', place) },
    ]),
  ),
});

describe('site.request', () => {
  const { shop, fleet, open, crawl } = useStage({ products: MANY, seed: SEED });

  const post = (body: unknown, more: object = {}): object => ({ method: 'POST', reads_only: true, body, ...more });
  const graphql = (more: Config = {}): Config => ({
    site: {
      product_url: `${shop.url}/graphql`,
      request: post({ query: QUERY, variables: { id: '{id}' } }),
      mapping: mappingAt('$.data.product'),
      ...more,
    },
    run: { deadline: '60s' },
  });
  const search = (more: Config = {}): Config => ({
    site: {
      product_url: `${shop.url}/search`,
      request: post('{"query": "{id}", "size": 1}'),
      mapping: mappingAt('$.hits[0]'),
      ...more,
    },
    run: { deadline: '60s', min_instances: 1, max_instances: 1, max_failed: '60%' },
  });
  const asked = async (): Promise<Arrival[]> => (await shop.log()).filter(({ kind }) => kind === 'page');
  const edit = (change: (text: string) => string): void =>
    writeFileSync(fleet.configPath, change(readFileSync(fleet.configPath, 'utf8')));

  it(
    'stores every product of a GraphQL API, each asked for once and at the pace, whatever its ID is',
    { tags: ['nightly'] },
    async () => {
      await open(IDS, { ...graphql({ conditional: true }), results: { history: 'changes' } });
      for (const night of [1, 2]) {
        await shop.reset();
        const report = expectAllStored(await fleet.dryRun(), IDS.length);
        // An etag in the answer makes no request conditional: a POST has no 304.
        expect(report.unchanged, `night ${night}`).toBeUndefined();
        const log = (await asked()).filter(({ id }) => id !== null);
        expect(new Set(log.map(({ method, path, status }) => `${method} ${path} ${status}`))).toEqual(
          new Set(['POST /graphql 200']),
        );
        expect(log.map(({ id }) => id!).toSorted()).toEqual(IDS.toSorted());
        // The selection {id} is sent as { id }, which says the same.
        const query = QUERY.replace('{id}', '{ id }');
        for (const { id, body } of log) expect(JSON.parse(body!)).toEqual({ query, variables: { id } });
        await expectSound(fleet, report, shop);
      }
      const rows = await fleet.query('select product_id, title, price, url from product_snapshots');
      expect(new Map(rows.map(({ product_id: id, title, price }) => [id, { title, price }]))).toEqual(
        new Map(
          IDS.map((id) => {
            const { title, price } = expectedRow(SEED, id);
            return [id, { title, price }];
          }),
        ),
      );
      expect(new Set(rows.map(({ url }) => url))).toEqual(new Set([`${shop.url}/graphql`]));
      expect(await fleet.query('select * from product_snapshots_history')).toEqual([]);
    },
  );

  it(
    'follows a 307 and no 302, tries failed products again, and shows each request',
    { tags: ['nightly'] },
    async () => {
      const [moved, sent, broken, fine] = productIds(4) as [string, string, string, string];
      await open([moved, sent, broken, fine], search());
      await shop.setRules([
        { id: moved, do: { type: 'chain', hops: 1, status: 307 } },
        { id: sent, do: { type: 'chain', hops: 1, status: 302 } },
        { id: broken, do: { type: 'status', status: 500 } },
      ]);
      const { report, stderr } = await fleet.dryRun();
      expect(report.products, stderr).toMatchObject({
        stored: 2,
        failed: 2,
        reasons: { redirect: 1, 'http-status': 1 },
      });
      const log = await asked();
      expect(new Set(log.map(({ method }) => method))).toEqual(new Set(['POST']));
      // Also where it is the page that proves the address.
      const elsewhere = log.filter(({ path }) => path !== '/search').map(({ path, id }) => `${path} ${id}`);
      expect(new Set(elsewhere)).toEqual(new Set([`/search?hops=0 ${moved}`]));
      await expectSound(fleet, report, shop);
      const product = JSON.parse((await fleet.run('product', sent, '--json')).stdout) as { nights: object[] };
      expect(product.nights[0]).toMatchObject({
        outcome: 'failed',
        reason: 'redirect',
        request: { method: 'POST', body: `{"query": "${sent}", "size": 1}` },
      });
      expect(product.nights[0]).toHaveProperty('attempts.0.evidence.request.body', `{"query": "${sent}", "size": 1}`);
      const shown = await fleet.run('product', sent);
      expect(shown.stdout).toContain(`/search  by POST: {"query": "${sent}", "size": 1}`);

      await shop.setRules([]);
      edit((text) => text.replace('"size": 1', '"size":  1'));
      const refused = await fleet.run('retry', report.run, '--dry-run', '--json');
      expect(refused.exitCode).toBe(2);
      expect(refused.stdout).toContain('site.request was POST {');
      edit((text) => text.replace('"size":  1', '"size": 1'));
      await shop.reset();
      const again = await endOf(fleet.start('retry', report.run, '--dry-run', '--json'));
      expect(again.report.products, again.stderr).toMatchObject({ planned: 2, stored: 2 });
      expect(new Set((await asked()).map(({ id }) => id))).toEqual(new Set([sent, broken]));

      const trial = await fleet.run('extract', '--id', fine);
      expect(trial.exitCode, trial.stderr).toBe(0);
      expect(trial.stdout).toContain(`POST ${shop.url}/search {"query": "${fine}", "size": 1}`);
      expect(trial.stdout).toContain('The product would be stored.');
    },
  );

  it('says extract --id in its advice, because the URL is that of every product', { tags: ['nightly'] }, async () => {
    const ids = productIds(6);
    const mapping = { fields: { title: { jsonpath: '$.hits[0].product.name', required: true } } };
    await open(ids, search({ mapping }));
    const { report } = await fleet.dryRun();
    expect(report.products.stored).toBe(0);
    expect((report.reasons ?? []).map(({ todo }) => todo).join('\n')).toMatch(
      /orchestrator extract --id P0000\d shows/,
    );
    expect(JSON.stringify(report)).not.toContain('extract --url');
  });

  it('asks a further page by the request of its section, and the product by GET', async () => {
    const ids = productIds(6);
    const link = { css: 'article.product', attr: 'data-id', regex: '^P', replace: { find: 'P', with: '/lookup' } };
    const { title, price } = SHOP_MAPPING.fields;
    await open(ids, {
      site: {
        pages_per_product: 2,
        mapping: {
          mappings: [
            {
              name: 'lookup',
              url_patterns: ['/lookup$'],
              request: post('sku={id}&detail=full', { content_type: 'application/x-www-form-urlencoded' }),
              fields: { brand: { jsonpath: '$.hits[0].product.brand', required: true } },
            },
            { name: 'product', url_patterns: ['/item/'], url_parsers: [link], fields: { title, price } },
          ],
        },
      },
      run: { deadline: '60s' },
    });
    const report = expectAllStored(await fleet.dryRun(), ids.length);
    await expectSound(fleet, report, shop);
    const log = await asked();
    expect(log.map(({ method, path, id }) => `${method} ${path} ${id}`).toSorted()).toEqual(
      ids.flatMap((id) => [`GET /item/${id} ${id}`, `POST /lookup ${id}`]).toSorted(),
    );
    const rows = await fleet.query('select product_id, title, brand from product_snapshots order by product_id');
    expect(rows).toEqual(
      ids.map((id) => {
        const row = expectedRow(SEED, id);
        return { product_id: id, title: row.title, brand: row.brand };
      }),
    );
  });

  it(
    'continues after kill -9 of an instance and of the main server, and repeats no finished product',
    { tags: ['nightly'] },
    async () => {
      const ids = productIds(MANY);
      await open(ids, graphql());
      const run = await crawl(24);
      const instances = fleet.leftovers().filter(({ command }) => command.includes('crawl-api'));
      expect(instances.length).toBeGreaterThan(0);
      process.kill(instances[0]!.pid, 'SIGKILL');
      run.kill('SIGKILL');
      await run.finished;
      const report = expectAllStored(await endOf(fleet.start('resume', '--json')), MANY);
      const counts = Map.groupBy(await asked(), ({ id }) => id!);
      expect(counts.size).toBe(MANY);
      // The one that was under way when its process was killed, and pages that prove an address.
      const repeated = [...counts.values()].filter(({ length }) => length > 1);
      expect(repeated.length).toBeLessThanOrEqual(1 + report.politeness.canaries);
      await expectSound(fleet, report, shop);
    },
  );

  it.each<[string, (shop: string) => object, RegExp]>([
    [
      'a mutation',
      () => ({ request: post({ query: 'mutation { buy }', variables: { id: '{id}' } }) }),
      /GraphQL mutation/,
    ],
    ['a POST of which nothing is said', () => ({ request: { method: 'POST', body: '{"id":"{id}"}' } }), /reads_only/],
    ['a browser', () => ({ render: 'browser' }), /site\.render: must be http/],
    ['a browser where it is needed', () => ({ render: 'auto' }), /site\.render: must be http/],
  ])('refuses %s with 4, before any request', { tags: ['nightly'] }, async (_what, site, message) => {
    await open(productIds(2), graphql(site(shop.url) as Config));
    for (const command of [['run', '--dry-run'], ['plan'], ['extract', '--id', 'P00001']]) {
      const { exitCode, stderr } = await fleet.run(...command);
      expect([exitCode, stderr]).toEqual([4, expect.stringMatching(message)]);
    }
    expect(await shop.log()).toEqual([]);
  });
});
