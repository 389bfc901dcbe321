/**
 * Handling of results, by the real command line: held, published, retried, recovered from the bucket.
 *
 * @module-tag nightly
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { readReport } from './fleet.ts';
import { useStage } from './stage.ts';

const PRODUCTS = 40;
const IDS = productIds(PRODUCTS);
const BAD = ['500-a', 'untitled-b'];

const { shop, fleet, open, crawl } = useStage({ products: PRODUCTS });

beforeEach(async () => {
  await shop.addProducts(BAD);
  await open([...IDS, ...BAD]);
});

/** The result of a command with --json: its exit code and document. */
async function json(...args: string[]): Promise<{ exitCode: number | null; document: Record<string, unknown> }> {
  const result = await fleet.run(...args, '--json');
  return { exitCode: result.exitCode, document: readReport(result) as unknown as Record<string, unknown> };
}

/** Replaces fields of the mapping. */
function changeFields(fields: object): void {
  const { site } = readConfig();
  Object.assign(site.mapping.fields, fields);
  changeConfig({ site });
}

const readConfig = () =>
  parse(readFileSync(fleet.configPath, 'utf8')) as { site: { mapping: { fields: object } }; results?: object };

/** Replaces whole sections. */
const changeConfig = (sections: object): void =>
  writeFileSync(fleet.configPath, stringify({ ...readConfig(), ...sections }));

/** Brand and rating no longer match anything. */
const SPOILT = { brand: '.nothing-like-it', rating: { css: '.nothing-like-it', number: true } };

/**
 * Two fields that show prices as `12,345`, which can be read in two ways: `bare` always, `mixed` beside others that
 * have their `¥`, so that its column shows the decimal mark.
 */
const OPEN_NUMBERS = {
  bare: { css: '.product .price', regex: '([0-9,]+)', number: true },
  mixed: { css: '.product .price', regex: '(¥[1-4][0-9,]*|[0-9,]+)', number: true },
};

interface Numbers {
  price: number;
  bare: number | null;
  mixed: number | null;
}

describe('results', () => {
  it('F35: are held when the layout has changed, and published when a person releases them', async () => {
    expect((await fleet.dryRun()).exitCode).toBe(0);
    const before = await fleet.query('select * from product_snapshots order by product_id');
    changeFields(SPOILT);
    const { exitCode, report } = await fleet.dryRun();
    expect(exitCode).toBe(13);
    expect(report).toMatchObject({ state: 'held', exitCode: 13, onTime: false });
    expect(report.reason).toMatch(/field \w+ filled 0 % \(before: /);
    expect(await fleet.query('select * from product_snapshots order by product_id')).toEqual(before);
    expect((await json('verify', report.run)).exitCode).toBe(0);
    const published = await json('publish');
    expect(published).toMatchObject({ exitCode: 0, document: { run: report.run, state: 'completed' } });
    const runs = await fleet.query('select distinct run_id from product_snapshots');
    expect(runs).toEqual([{ run_id: report.run }]);
    expect((await json('verify', report.run)).exitCode).toBe(0);
    const again = await json('publish', report.run);
    expect(again).toMatchObject({ exitCode: 2, document: { error: { code: 'run-not-held' } } });
  });

  it('get the column of a new field with --add-columns, and otherwise the run is refused', async () => {
    expect((await fleet.dryRun()).exitCode).toBe(0);
    changeFields({ heading: 'h1' });
    const refused = await json('run', '--dry-run');
    expect(refused).toMatchObject({ exitCode: 4, document: { error: { code: 'results-schema' } } });
    expect((refused.document.error as { hint: string }).hint).toContain('--add-columns');
    // Without a terminal there is nothing to ask on.
    expect(await json('run', '--dry-run', '--add-columns')).toMatchObject({ exitCode: 2 });
    const { exitCode, report } = await fleet.dryRun('--add-columns', '--yes');
    expect(exitCode).toBe(0);
    const rows = await fleet.query('select heading, run_id from product_snapshots');
    expect(rows).toHaveLength(PRODUCTS);
    for (const row of rows) expect(row).toEqual({ heading: expect.stringMatching(/\S/) as string, run_id: report.run });
    expect((await json('verify', report.run)).exitCode).toBe(0);
  });

  it('name the products that failed, and a child run retries those', async () => {
    const { report } = await fleet.dryRun();
    expect(report).toMatchObject({ parent: null, products: { planned: PRODUCTS + 2, failed: 2 } });
    const { document } = await json('status', report.run, '--failed');
    expect(document.failed).toEqual([
      {
        id: '500-a',
        reason: 'http-status',
        detail: expect.stringContaining('500') as string,
        url: expect.stringContaining('/item/500-a') as string,
      },
      {
        id: 'untitled-b',
        reason: 'parse',
        detail: expect.any(String) as string,
        url: expect.stringContaining('/item/untitled-b') as string,
      },
    ]);
    const { stdout } = await fleet.run('status', report.run, '--failed');
    expect(stdout.split('\n')[0]).toBe('id\treason\tdetail\turl');
    const nothing = await json('retry', report.run, '--reason', 'timeout,network', '--dry-run');
    expect(nothing).toMatchObject({ exitCode: 0, document: { run: null, parent: report.run } });
    const wrong = await fleet.run('retry', report.run, '--reason', 'weather', '--dry-run');
    expect(wrong.exitCode).toBe(2);
    const child = await json('retry', report.run, '--dry-run');
    expect(child.document).toMatchObject({ parent: report.run, products: { planned: 2, failed: 2 } });
    expect(child.exitCode).toBe(12);
    const one = await json('retry', report.run, '--reason', 'parse', '--dry-run');
    expect(one.document).toMatchObject({ parent: report.run, products: { planned: 1, reasons: { parse: 1 } } });

    // Two retries of far fewer products: neither refused nor used as a baseline.
    await fleet.query(`update products set active = 0 where id not in ('${IDS.slice(0, 4).join("', '")}')`);
    const shrunken = /yields 4 products, 90.5 % fewer than the usual 42 .*max_drop is 50 %/;
    const refused = await json('run', '--dry-run');
    expect(refused).toMatchObject({
      exitCode: 13,
      document: { error: { code: 'too-few-products', message: expect.stringMatching(shrunken) as string } },
    });
    expect(await fleet.query('select count(*) as n from crawlfleet_runs')).toEqual([{ n: 3 }]);
    const planned = await json('plan', '--dry-run');
    expect(planned).toMatchObject({
      exitCode: 13,
      document: { verdict: 'too-few-products', faults: [expect.stringMatching(shrunken) as string] },
    });
    const accepted = await fleet.dryRun('--accept-drop');
    expect(accepted).toMatchObject({ exitCode: 0, report: { products: { planned: 4, usual: 42 } } });
    expect(accepted.report.notes.join('\n')).toMatch(/90.5 % fewer than the usual 42; accepted with --accept-drop/);
    const list = await json('plan', '--dry-run');
    expect(list).toMatchObject({ exitCode: 0, document: { verdict: 'feasible' } });
  });

  it('F46, F50: are loaded from the bucket when the database has lost the run, once; ambiguous numbers are decided as before', async () => {
    changeFields(OPEN_NUMBERS);
    const { report } = await fleet.dryRun();
    const rows = await fleet.query('select * from product_snapshots order by product_id');
    const numbers = rows as unknown as Numbers[];
    const large = numbers.filter(({ price }) => price >= 1_000);
    const decided = large.filter(({ price }) => !/^[1-4]/.test(String(price)));
    expect(decided.length * (large.length - decided.length)).toBeGreaterThan(0);
    for (const { price, bare, mixed } of numbers) expect([mixed, bare]).toEqual([price, price < 1_000 ? price : null]);
    const shown = { '.': large.length - decided.length, ',': 0 };
    const example = expect.stringMatching(/^\d{1,2},\d{3}$/) as string;
    expect(report.numbers).toEqual([
      { field: 'bare', mark: null, shown: { '.': 0, ',': 0 }, decided: 0, empty: large.length, example },
      { field: 'mixed', mark: '.', shown, decided: decided.length, empty: 0, example: null },
    ]);
    expect(report.notes.join('\n')).toMatch(new RegExp(`field bare: ${large.length} values were left empty`));
    const tables = await fleet.query(`select name from sqlite_master where type = 'table' and name like 'crawlfleet%'`);
    for (const { name } of tables) await fleet.query(`drop table "${String(name)}"`);
    await fleet.query('drop table product_snapshots');
    const { results } = readConfig();
    changeConfig({ results: { table: 'other_snapshots' } });
    const other = await json('load', report.run);
    expect(other).toMatchObject({ exitCode: 4, document: { error: { code: 'config-invalid' } } });
    changeConfig({ results });
    const loaded = await json('load', report.run);
    expect(loaded.document).toMatchObject({ run: report.run, state: 'completed', products: report.products });
    expect(loaded.document.numbers).toMatchObject(
      (report.numbers ?? []).map(({ field, decided, empty }) => ({ field, decided, empty })),
    );
    expect(await fleet.query('select * from product_snapshots order by product_id')).toEqual(rows);
    expect((await json('verify', report.run)).exitCode).toBe(0);
    const again = await json('load', report.run);
    expect(again).toMatchObject({ exitCode: 0, document: { state: 'completed', loaded: { parts: 0 } } });
    const unknown = await json('load', '20260101-000000-none');
    expect(unknown.exitCode).not.toBe(0);
    expect(fleet.leftovers()).toEqual([]);
  });
});

describe('the next run', () => {
  /** Kills the main server of a run in the middle of it; returns the run's row. */
  async function killed(deadline: string): Promise<{ id: string; deadline_at: number }> {
    // Slow enough to be killed in its middle when this process gets little of a busy machine.
    const { site } = readConfig();
    changeConfig({ site: { ...site, interval: '1s' } });
    const run = await crawl(12, '--deadline', deadline);
    run.kill('SIGKILL');
    await run.finished;
    changeConfig({ site });
    const [row] = await fleet.query('select id, deadline_at from crawlfleet_runs');
    return row as { id: string; deadline_at: number };
  }

  it('F42, F53: is refused while a run without a main server is still at work', async () => {
    const { id } = await killed('45s');
    const next = await json('run', '--dry-run');
    expect(next).toMatchObject({ exitCode: 20, document: { error: { code: 'run-unfinished' } } });
    expect(JSON.stringify(next.document)).toContain(`orchestrator resume ${id}`);
    expect((await json('resume')).document).toMatchObject({ run: id, state: 'completed' });
    expect((await fleet.dryRun()).report.products.planned).toBe(PRODUCTS + 2);
  });

  it('F42: ends one whose deadline is past before it begins, with the results that its instances left in the bucket', async () => {
    const { id, deadline_at } = await killed('40s');
    await waitFor(() => Promise.resolve(Date.now() > deadline_at), { what: 'the deadline', timeoutMs: 60_000 });
    // A run into another table has to end the earlier one of its site as well.
    changeConfig({ results: { table: 'later_snapshots' } });
    const next = await fleet.dryRun();
    expect(next.stderr).toContain(`Run ${id} has lost its main server`);
    expect(next.report.run).not.toBe(id);
    const runs = await fleet.query('select id, phase, report from crawlfleet_runs order by started_at');
    expect(runs.map((r) => [r.id, r.phase])).toEqual([
      [id, 'completed'],
      [next.report.run, 'completed'],
    ]);
    const old = JSON.parse(String(runs[0]!.report)) as typeof next.report;
    expect(old.exitCode).toBe(15);
    expect(old.products.stored).toBeGreaterThanOrEqual(12);
    expect((await json('verify', id)).exitCode).toBe(0);
    expect(fleet.leftovers()).toEqual([]);
  });
});
