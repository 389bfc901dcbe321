/** Bad input: a clear message, the right exit code, nothing launched, nothing lost. */
import { type AddressInfo, createServer } from 'node:net';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { TestEngine } from '../support/mariadb/database.ts';
import { type Config, readReport } from './fleet.ts';
import { useStage } from './stage.ts';

const NOWHERE = 'http://127.0.0.1:9/item/{id}';
const { fleet, open } = useStage({ products: 1 });

/** A fleet whose site does not answer. */
const prepare = (config: Config = {}, ids: readonly string[] = ['a', 'b'], engine: TestEngine = 'sqlite') =>
  open(ids, { ...config, site: { product_url: NOWHERE, ...(config.site as object) } }, engine);

interface Refusal {
  exitCode: number | null;
  code: string;
  text: string;
}

async function refusal(...args: string[]): Promise<Refusal> {
  const result = await fleet.run('run', '--dry-run', '--json', ...args);
  const { error } = JSON.parse(result.stdout) as { error: { code: string; message: string; hint: string | null } };
  expect(fleet.leftovers()).toEqual([]);
  return { exitCode: result.exitCode, code: error.code, text: `${error.message} ${error.hint ?? ''}` };
}

describe('configuration', () => {
  it('refuses faults of all kinds at once', async () => {
    await prepare({ site: { product_url: 'http://127.0.0.1:9/item', interval: 'often', nonsense: 1 } });
    const { exitCode, code, text } = await refusal();
    expect({ exitCode, code }).toEqual({ exitCode: 4, code: 'config-invalid' });
    for (const part of [
      'site.product_url: must contain {id}',
      'site.interval: must be a duration',
      'site.nonsense: unknown key',
    ])
      expect(text).toContain(part);
  });

  it('refuses an invalid deadline', async () => {
    await prepare();
    const result = await fleet.run('run', '--dry-run', '--deadline', 'soon');
    expect(result.exitCode).toBe(2);
    expect(result.stderr).toContain('It must be a duration');
  });

  it('suggests a deadline that could be met', async () => {
    const ids = Array.from({ length: 500 }, (_, i) => `p${i}`);
    await prepare({ site: { interval: '10s' }, run: { min_instances: 1, max_instances: 3 } }, ids);
    const { exitCode, code, text } = await refusal('--deadline', '60s');
    expect({ exitCode, code }).toEqual({ exitCode: 16, code: 'infeasible' });
    expect(text).toMatch(/--deadline \d+/);
  });

  it('refuses a callback port that is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await prepare({ site: { check: 'off' }, server: { listen: `127.0.0.1:${port}` } });
    const { exitCode, code, text } = await refusal();
    server.close();
    expect({ exitCode, code }).toEqual({ exitCode: 4, code: 'port-taken' });
    expect(text).toContain(`port ${port}`);
  });
});

describe('database', () => {
  const expectRefused = async (engine: TestEngine, query: string, expected: string): Promise<void> => {
    await prepare({ products: { query } }, undefined, engine);
    const { exitCode, code, text } = await refusal();
    expect({ exitCode, code }).toEqual({ exitCode: 4, code: 'products-query' });
    expect(text).toContain(expected);
  };
  it.each<[TestEngine, string, string]>([
    ['sqlite', 'select id from nowhere', 'nowhere'],
    ['mysql', 'select active from products', 'id'],
  ])('on %s refuses the query %s', expectRefused);
  it.each<[TestEngine, string, string]>([
    ['mysql', 'select id from nowhere', 'nowhere'],
    ['sqlite', 'select active from products', 'id'],
    ['sqlite', 'this is not SQL', 'syntax'],
  ])('on %s refuses the query %s, too', { tags: ['nightly'] }, expectRefused);

  it('F51: refuses a result table that does not fit, before anything is launched', async () => {
    await prepare({}, undefined, 'mysql');
    await fleet.query(
      'create table product_snapshots (product_id varchar(100) primary key, title int, stock int not null)',
    );
    const { exitCode, code, text } = await refusal();
    expect({ exitCode, code }).toEqual({ exitCode: 4, code: 'results-schema' });
    for (const column of ['title', 'price', 'run_id', 'stock']) expect(text).toContain(column);
  });
});

describe('no products', () => {
  it('end with 13 before anything is launched', async () => {
    await prepare({}, []);
    expect(await refusal()).toEqual({
      exitCode: 13,
      code: 'too-few-products',
      text: expect.stringMatching(/yields no product; products.min_rows is 1 .*products.min_rows: 0/) as string,
    });
    expect(await fleet.query('select id from crawlfleet_runs')).toEqual([]);
  });

  it('end with 13 in plan and in doctor, too', { tags: ['nightly'] }, async () => {
    await prepare({}, []);
    const plan = await fleet.run('plan', '--dry-run');
    expect(plan).toMatchObject({ exitCode: 13, stdout: expect.stringMatching(/too few[^]*min_rows is 1/) as string });
    expect((await fleet.run('doctor', '--dry-run')).exitCode).toBe(13);
  });

  it('complete at once where products.min_rows allows it, and launch nothing', async () => {
    await prepare({ products: { min_rows: 0 } }, []);
    const result = await fleet.run('run', '--dry-run', '--json');
    expect(readReport(result)).toMatchObject({
      state: 'completed',
      exitCode: 0,
      products: { planned: 0, stored: 0, gone: 0, failed: 0 },
      instances: { planned: 0, launched: 0 },
    });
    expect(result.exitCode).toBe(0);
    expect((await fleet.run('verify', '--json')).exitCode).toBe(0);
  });
});

describe('usage', () => {
  it.each([[['run', '--json', '--nope']], [['bogus', '--json']], [['run', '--json', '--deadline', '-5s']]])(
    'answers %j with one JSON document',
    async (args) => {
      await prepare();
      const result = await fleet.run(...args);
      expect(result.exitCode).toBe(2);
      expect(JSON.parse(result.stdout)).toMatchObject({ error: { code: 'usage' }, exitCode: 2 });
    },
  );
});
