/**
 * The package as a user installs it: packed, installed in an empty folder, and run by each Node that it names.
 *
 * @module-tag nightly
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import { startCommand, waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';
import { makeFleet } from './fleet.ts';

const ROOT = new URL('../../', import.meta.url);
const { engines, version } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
  engines: { node: string };
  version: string;
};
const IDS = productIds(20);

let shop: Shop;
let folder: TempDir;

beforeAll(async () => {
  folder = tempDir('crawlfleet-package-');
  shop = await startShop({ products: IDS.length });
  await run('npm', ['pack', '--pack-destination', folder.path], ROOT.pathname);
  await run('npm', ['install', '--no-audit', '--no-fund', `./crawlfleet-${version}.tgz`]);
}, 180_000);
afterAll(async () => {
  await shop.stop();
  folder.remove();
});

async function run(file: string, args: readonly string[], cwd = folder.path): Promise<void> {
  const { exitCode, stdout, stderr } = await startCommand(file, args, { cwd, timeoutMs: 150_000 }).finished;
  if (exitCode !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${exitCode}\n${stdout}\n${stderr}`);
}

/** The oldest Node that the package allows, from the registry. */
async function oldestNode(): Promise<string> {
  const oldest = `${engines.node.replace('>=', '')}.0`;
  const name = `node-linux-${process.arch}`;
  await run('npm', ['pack', `${name}@${oldest}`]);
  await run('tar', ['-xzf', `${name}-${oldest}.tgz`]);
  return folder.file('package/bin/node');
}

describe('the package', () => {
  it.each([
    ['the oldest Node it allows', oldestNode],
    ['the Node it is developed with', () => Promise.resolve(process.execPath)],
  ])('crawls, publishes and proves a run under %s', async (_, findNode) => {
    const launcher = folder.file('node_modules/crawlfleet/bin/orchestrator.js');
    const program = [await findNode(), launcher] as const;
    const fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids: IDS, program });
    try {
      const { exitCode, report, stderr } = await fleet.dryRun();
      expect(exitCode, stderr).toBe(EXIT.complete);
      expect(report.products).toMatchObject({ planned: IDS.length, stored: IDS.length });
      expect((await fleet.run('verify')).exitCode).toBe(EXIT.complete);
      const serve = fleet.start('serve', '--listen', '127.0.0.1:0');
      const url = await waitFor(() => /page: (\S+)/.exec(serve.stdout())?.[1], { what: 'the page to be served' });
      expect(await (await fetch(`${url}main.js`)).text()).toContain('crawlfleet');
      serve.kill('SIGTERM');
      expect((await serve.finished).exitCode).toBe(EXIT.complete);
      expect(fleet.leftovers()).toEqual([]);
    } finally {
      await fleet.remove();
    }
  });
});
