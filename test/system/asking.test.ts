/**
 * Queries about a finished run: a product and its attempts, rows as files, the page as a file, metrics; on both
 * databases.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { beforeAll, expect, it } from 'vitest';
import type { ProductDocument } from '../../orchestrator/core/read/product-document.ts';
import type { RunDocument } from '../../orchestrator/core/read/run-documents.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { eachEngineByDay } from '../support/mariadb/database.ts';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { useFleet } from './stage.ts';

const IDS = [...productIds(20), 'once-500-a', '500-b', '404-c', 'untitled-d'];

eachEngineByDay('a run', (engine) => {
  const config = { run: { deadline: '60s', max_failed: '50%' } };
  const { shop, fleet } = useFleet({ products: 20 }, { engine, ids: IDS, config });
  let report: RunReport;

  beforeAll(async () => {
    ({ report } = await fleet.dryRun());
  });

  async function product(id: string): Promise<ProductDocument> {
    return JSON.parse((await fleet.run('product', id, '--json')).stdout) as ProductDocument;
  }

  it('shows every attempt of a product, with its evidence', async () => {
    const stored = await product('P00011');
    expect(stored.nights).toMatchObject([{ run: report.run, outcome: 'stored', attempts: [{ outcome: 'stored' }] }]);
    expect(stored.rows).toMatchObject([{ table: 'product_snapshots', rows: [{ product_id: 'P00011' }] }]);

    const [second] = (await product('once-500-a')).nights;
    expect(second!.attempts).toMatchObject([
      { outcome: 'failed', reason: 'http-status', evidence: { status: 500 } },
      { outcome: 'stored', evidence: null },
    ]);
    expect(second!.attempts[0]!.address).toMatch(/^127\./);

    const [failed] = (await product('500-b')).nights;
    expect(failed).toMatchObject({ outcome: 'failed', reason: 'http-status' });
    expect(failed!.attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);

    expect((await product('404-c')).nights).toMatchObject([{ outcome: 'gone', attempts: [{ outcome: 'gone' }] }]);
    expect((await product('untitled-d')).nights[0]!.attempts.at(-1)!.evidence!.body).toContain('<html');
  });

  it('finds a product by its URL, and reports one that no run has', async () => {
    expect((await product(shop.productUrl.replace('{id}', 'P00011'))).id).toBe('P00011');
    const { exitCode, stdout } = await fleet.run('product', 'nowhere');
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('none of the last runs has this product')]);
  });

  it('has samples, the last of which matches the report', async () => {
    const samples = (await fleet.query('select sample from crawlfleet_samples order by at')).map(
      (row) =>
        JSON.parse(row.sample as string) as {
          stored: number;
          gone: number;
          failed: number;
          replies: Record<string, number>;
        },
    );
    const { stored, gone, failed } = report.products;
    expect(samples.at(-1)).toMatchObject({ stored, gone, failed });
    expect(samples.at(-1)!.replies).toMatchObject({ 200: expect.any(Number), 404: 1, 500: 3 });
    expect(samples.length).toBeGreaterThan(3);
  });

  const expectExport = async (format: 'csv' | 'jsonl' | 'parquet'): Promise<void> => {
    const file = join(fleet.dir, `rows.${format}`);
    expect((await fleet.run('export', '--format', format, '--to', file)).exitCode).toBe(0);
    const bytes = readFileSync(file);
    const ids = await idsIn(bytes, format);
    const rows = await fleet.query('select product_id, title, price from product_snapshots order by product_id');
    expect(ids.toSorted()).toEqual(rows.map((row) => String(row.product_id)).toSorted());
    if (format === 'jsonl')
      expect(JSON.parse(bytes.toString('utf8').split('\n')[0]!)).toMatchObject({
        title: rows[0]!.title,
        price: rows[0]!.price,
      });
  };
  it('is exported as parquet with every row', () => expectExport('parquet'));
  it.each(['csv', 'jsonl'] as const)('is exported as %s with every row', { tags: ['nightly'] }, expectExport);

  it('writes its page to a file, which `report --html` recreates', async () => {
    const kept = readFileSync(join(fleet.dir, `.crawlfleet/runs/${report.run}/report.html`), 'utf8');
    const { stdout } = await fleet.run('report', report.run, '--html');
    for (const html of [kept, stdout]) {
      const data = /<script type="application\/json" id="report">(.*?)<\/script>/s.exec(html)![1]!;
      expect((JSON.parse(data) as { run: RunDocument }).run).toMatchObject({ run: report.run, state: 'completed' });
    }
  });

  it(
    'crawls only the IDs of a file, or the first ones, without affecting the check of the list length',
    { tags: ['nightly'] },
    async () => {
      const file = join(fleet.dir, 'ids.txt');
      writeFileSync(file, 'P00011\r\n\nP00012\nP00011\n');
      const chosen = await fleet.dryRun('--ids', file);
      expect(chosen.report.products).toMatchObject({ planned: 2, duplicates: 1, stored: 2 });
      const served = fleet.start('run', '--dry-run', '--limit', '3', '--metrics', '127.0.0.1:0', '--json');
      const url = await waitFor(() => /metrics: (\S+)/.exec(served.stderr())?.[1], { what: 'the metrics' });
      await waitFor(
        async () =>
          (await (await fetch(url)).text()).includes('crawlfleet_run_products_planned{table="product_snapshots"} 3'),
        {
          what: 'the run in the metrics',
          everyMs: 200,
        },
      );
      expect((JSON.parse((await served.finished).stdout) as RunReport).products.planned).toBe(3);
      expect((await fleet.dryRun()).report.products.usual).toBe(IDS.length);
    },
  );

  it('refuses IDs that cannot be crawled, and names their lines; nothing is launched', async () => {
    const file = join(fleet.dir, 'bad.txt');
    writeFileSync(file, `P1\n${'x'.repeat(3_000)}\n`);
    const { exitCode, stderr } = await fleet.run('run', '--dry-run', '--ids', file);
    expect(exitCode).toBe(4);
    expect(stderr).toContain('line 2: the product ID');
    expect((await fleet.run('run', '--dry-run', '--ids', join(fleet.dir, 'none'))).exitCode).toBe(2);
  });
});

async function idsIn(bytes: Buffer, format: 'csv' | 'jsonl' | 'parquet'): Promise<string[]> {
  if (format === 'csv') return [...bytes.toString('utf8').matchAll(/\r\n([^,\r\n]+),/g)].map(([, id]) => id!);
  if (format === 'jsonl')
    return bytes
      .toString('utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { product_id: string }).product_id);
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
  return ((await parquetReadObjects({ file })) as { product_id: string }[]).map(({ product_id }) => product_id);
}
