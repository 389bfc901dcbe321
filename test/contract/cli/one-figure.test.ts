/** `plan` and `simulate` on the same configuration: one night has one price, one end and one probability. */
import { features } from '../../support/features.ts';
import { writeFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { openDatabase } from '../../../orchestrator/core/db/connect.ts';
import { setHost } from '../../../orchestrator/core/db/host-rows.ts';
import { migrate } from '../../../orchestrator/core/db/migrate.ts';
import { planCommand } from '../../../orchestrator/cli/commands/run.ts';
import { simulateCommand } from '../../../orchestrator/features/simulate/command.ts';
import type { Output } from '../../../orchestrator/cli/output.ts';
import type { Plan } from '../../../orchestrator/core/plan/plan.ts';
import type { SimSummary } from '../../../orchestrator/features/simulate/summary.ts';
import { tempDir, type TempDir } from '../../support/temp-dir.ts';

let folder: TempDir;

beforeEach(() => {
  folder = tempDir();
  const db = new Sqlite(folder.file('fleet.db'));
  db.exec('create table products (id text primary key)');
  const insert = db.prepare('insert into products values (?)');
  db.transaction(() => Array.from({ length: 300 }, (_, i) => insert.run(`P${i}`)))();
  db.close();
});
afterEach(() => folder.remove());

type Section = Record<string, object>;

function writeConfig({ site, products, aws }: Section): string {
  const file = folder.file('fleet.yaml');
  const config = {
    site: {
      product_url: 'http://shop.example/item/{id}',
      mapping: { fields: { title: { css: 'h1', required: true } } },
      interval: '10s',
      robots: 'ignore',
      ...site,
    },
    products: { query: 'select id from products', ...products },
    database: { url: 'sqlite:./fleet.db' },
    run: { deadline: '20m' },
    aws: aws ?? {},
  };
  writeFileSync(file, stringify(config));
  return file;
}

async function both(change: Section): Promise<{ plan: Plan; simulated: SimSummary; text: string }> {
  const documents: unknown[] = [];
  const lines: string[] = [];
  const output: Output = {
    json: false,
    line: (text = '') => void lines.push(text),
    document: (d: unknown) => void documents.push(d),
  };
  const options = { configPath: writeConfig(change), flags: [], dryRun: true, environment: {}, features };
  await planCommand(options, output);
  await simulateCommand({ ...options, chances: {}, runs: 1, seed: 1 }, output);
  const [plan, simulated] = documents as [Plan, SimSummary];
  return { plan, simulated, text: lines.join('\n') };
}

it.each<[string, Section]>([
  ['a balancer of its own', {}],
  ['a balancer without public addresses', { aws: { balancer_scheme: 'internal' } }],
  ['a balancer in three zones', { aws: { subnets: ['subnet-a', 'subnet-b', 'subnet-c'] } }],
  ["the user's balancer", { aws: { load_balancer: 'mine' } }],
  ['no balancer', { aws: { load_balancer: 'none' } }],
  ['two regions', { aws: { regions: [{ region: 'eu-west-1', max_instances: 2 }, { region: 'us-east-1' }] } }],
  [
    'a browser, larger volumes and more pages',
    { site: { render: 'browser', pages_per_product: 2 }, aws: { volume: { size: 20 } } },
  ],
  ['what is due', { products: { recrawl: { base: '30d', capacity: 120 } } }],
])('plan and simulate say the same of a night with %s', async (_, change) => {
  const { plan, simulated } = await both(change);
  expect(plan.verdict).toBe('feasible');
  expect(simulated).toMatchObject({
    plannedCostUsd: plan.cost.total,
    plannedOnTimeShare: plan.onTimeProbability,
    plannedEndMs: { p50: plan.endP50Ms, p95: plan.endP95Ms },
    products: { planned: plan.products },
    instances: { planned: plan.instances },
  });
  // What was simulated is billed on the same terms; only its times differ.
  expect(Math.abs(simulated.costUsd.p50 - plan.cost.total)).toBeLessThan(0.1 * plan.cost.total);
});

it('plan and simulate say the same of a night at any hosts, of which an operator has denied and paced some', async () => {
  await using database = await openDatabase(`sqlite:${folder.file('fleet.db')}`);
  await migrate(database);
  await setHost(database, 'h1.example', { paceMs: 40_000 });
  await setHost(database, 'h2.example', { denied: true });
  const { plan, simulated } = await both({
    site: { product_url: undefined!, robots: undefined!, hosts: 'any', user_agent: 'bot/1.0 (+https://bot.example/)' },
    products: { query: "select id, 'https://h' || (rowid % 30) || '.example/' || id as url from products" },
  });
  expect(plan).toMatchObject({ verdict: 'feasible', products: 290, manyHosts: { hosts: 29 } });
  // Ten records and 1.3 requests for each, at a pace of 40 seconds.
  expect(plan.manyHosts!.longestMs).toBeGreaterThan(13 * 40_000);
  expect(simulated).toMatchObject({
    plannedEndMs: { p50: plan.endP50Ms, p95: plan.endP95Ms },
    products: { planned: 290, failed: 0 },
    hosts: { listed: 29 },
  });
  expect(simulated.hosts!.requests).toBeCloseTo(plan.manyHosts!.requests, 0);
  expect(simulated.endMs.p50 / plan.endP50Ms).toBeGreaterThan(0.9);
  expect(simulated.endMs.p50 / plan.endP50Ms).toBeLessThan(1.1);
});

it('both say which addresses the price has, and that the probability counts no loss', async () => {
  const { plan, text } = await both({});
  expect(plan.balancerAddresses).toBe(2);
  const words = text.replaceAll(/\s+/g, ' ');
  expect(words).toContain('balancer with 2 public addresses $');
  expect(words).toMatch(/on time in [\d.]+ % if no instance is lost/);
  expect(words).toMatch(/on time 100 % of runs \(the plan says [\d.]+ % if no instance is lost\)/);
});
