/**
 * F42 on real processes: the main server is killed, and the run is resumed only long after its deadline.
 *
 * @module-tag nightly
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import type { Progress } from '../../shared/wire/callbacks.ts';
import { waitFor } from '../support/processes.ts';
import { checkProof, checkRows, readReport } from './checks.ts';
import { useGround } from './ground.ts';
import type { Stage } from './stage.ts';

const SEED = 43;
const PRODUCTS = 45;

describe('a main server that is gone permanently', () => {
  const ground = useGround(SEED, PRODUCTS);
  let stage: Stage;

  const objects = (ending: string): string[] =>
    readdirSync(join(stage.dir, 'sandbox', 's3'), { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.includes(ending),
    );

  /** A run whose main server dies when every product has an owner, and whose instances have all ended on their own. */
  async function abandonedRun(grace: string): Promise<void> {
    stage = await ground.open({
      name: 'gone',
      products: PRODUCTS,
      run: { deadline: '30s', grace },
    });
    const main = stage.start('run', '--dry-run', '--json');
    // Without a main server, no instance could crawl products that were not yet assigned.
    await waitFor(async () => (await stage.run()) !== null && (await assigned()) === PRODUCTS, {
      what: 'every product to be known to an instance',
      timeoutMs: 60_000,
    });
    main.kill('SIGKILL');
    await main.finished;
    await waitFor(async () => (await stage.instances()).every(({ state }) => state === 'terminated'), {
      what: 'every instance to power itself off',
      timeoutMs: 120_000,
    });
    expect(objects('manifest')).toHaveLength(3);
    expect(objects('.ndjson.gz').length).toBeGreaterThanOrEqual(3);
  }

  it('F42: instances finish, upload, close their epochs and power off on their own; the next start has all their rows', async () => {
    await abandonedRun('10s');
    expect((await stage.shop.stats()).requests).toBe(PRODUCTS);
    const resumed = await stage.start('resume', '--json').finished;
    const report = await readReport(stage);
    expect(report, resumed.stderr).toMatchObject({ products: { planned: PRODUCTS, stored: PRODUCTS } });
    expect([EXIT.complete, EXIT.deadline]).toContain(resumed.exitCode);
    expect((await stage.shop.stats()).requests).toBe(PRODUCTS);
    expect([...(await checkProof(stage)), ...(await checkRows(stage, report!, SEED))]).toEqual([]);
  });

  /** Products that the instances report as granted to them. */
  async function assigned(): Promise<number> {
    const rows = await stage.query('select progress from crawlfleet_instances where progress is not null');
    return rows.map(({ progress }) => JSON.parse(String(progress)) as Progress).reduce((sum, p) => sum + p.assigned, 0);
  }
});
