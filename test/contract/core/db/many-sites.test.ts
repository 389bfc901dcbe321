/** What is read of one site, in a database to which other sites have added many runs since. */
import { beforeAll, expect, it } from 'vitest';
import type { Config } from '../../../../orchestrator/core/config/load-config.ts';
import { readProduct } from '../../../../orchestrator/core/read/product-document.ts';
import { findRun, isUnfinished, runsOfSite } from '../../../../orchestrator/core/lookup/find-run.ts';
import type { RunSettings } from '../../../../orchestrator/core/model/run-settings.ts';
import { History } from '../../../../orchestrator/core/db/history.ts';
import { metricsText } from '../../../../orchestrator/core/read/metrics.ts';
import { NO_PROGRESS } from '../../../../shared/wire/callbacks.ts';
import { createInstance, createRun, onBothEngines, settings, type TestRun } from './harness.ts';

onBothEngines('After sixty runs of other sites', (bench) => {
  let first: TestRun;

  beforeAll(async () => {
    const settingsOf = (table: string, host: string): RunSettings => ({
      ...settings(table),
      site: { productUrl: `https://${host}/{id}`, intervalMs: 5_000 } as RunSettings['site'],
      aws: { region: 'eu-west-1' } as RunSettings['aws'],
    });
    first = await createRun(bench(), ['p1'], { settings: settingsOf('first_site', 'a.example') });
    const other = settingsOf('other_site', 'b.example');
    const ids: string[] = [];
    for (let i = 0; i < 60; i++) ids.push((await createRun(bench(), ['p2'], { settings: other })).id);
    await bench().db.knex('crawlfleet_runs').whereIn('id', ids).update({ phase: 'completed', report: '{"notes":[]}' });
  });

  it('a product still has its nights', async () => {
    const { stores, db } = bench();
    const { nights, rows } = await readProduct('https://a.example/p1', { stores, history: new History(db) });
    expect(nights.map(({ run }) => run)).toEqual([first.id]);
    expect(rows.map(({ table }) => table)).toContain('first_site');
  });

  it('the commands still find its runs, and only these', async () => {
    const { runs } = bench().stores;
    const values = {
      site: { product_url: 'https://www.a.example/{id}', follow: { hosts: [] } },
      results: { table: 'any' },
    };
    const config = { values } as unknown as Config;
    expect((await runsOfSite(runs, config)).map(({ id }) => id)).toEqual([first.id]);
    const found = await findRun(runs, { runId: undefined, config }, 'unfinished', isUnfinished);
    expect(found.id).toBe(first.id);
  });

  it('the metrics still have the run that is at work, and what its products came to that have no row', async () => {
    const misses = [{ reason: 'http-status', detail: 'http-status, HTTP 500: x', products: 1, waiting: 4, url: null }];
    await createInstance(bench(), first.id, 0);
    const progress = JSON.stringify({ ...NO_PROGRESS, failed: 1, misses });
    await bench().db.knex('crawlfleet_instances').where({ run_id: first.id }).update({ phase: 'crawling', progress });
    const { text } = await metricsText(bench().stores);
    const labels = 'table="first_site",reason="http-status",sign="500"';
    expect(text).toContain('crawlfleet_run_products_waiting{table="first_site"} 4');
    expect(text).toContain(`crawlfleet_run_products_missed{${labels},state="ended"} 1`);
    expect(text).toContain(`crawlfleet_run_products_missed{${labels},state="waiting"} 4`);
    expect(text).toContain('crawlfleet_run_phase{table="first_site",phase="planned"} 1');
  });
});
