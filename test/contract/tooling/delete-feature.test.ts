/**
 * Each feature can be taken out: its folder and its lines in orchestrator/features.ts are deleted from a copy of this
 * tree, which must still compile, crawl and prove what it has crawled.
 *
 * @module-tag nightly
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import { featureFolders } from '../../support/import-graph.ts';
import { startCommand } from '../../support/processes.ts';
import { productIds } from '../../support/shop/product.ts';
import { type Shop, startShop } from '../../support/shop/start-shop.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';
import { makeFleet } from '../../system/fleet.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const NOT_NEEDED = /^(?:test|docs|bench|examples)\//;
const WIRING = 'orchestrator/features.ts';
const TIMEOUT_MS = 300_000;
const IDS = productIds(20);

let shop: Shop;
beforeAll(async () => {
  shop = await startShop({ products: IDS.length });
});
afterAll(() => shop.stop());

/** The tracked files of this tree without the feature. */
function copyWithout(feature: string, into: string): void {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean);
  const kept = files.filter((file) => !NOT_NEEDED.test(file) && !file.startsWith(`${folderOf(feature)}/`));
  for (const file of kept) cpSync(join(ROOT, file), join(into, file));
  symlinkSync(join(ROOT, 'node_modules'), join(into, 'node_modules'));
  const lines = readFileSync(join(into, WIRING), 'utf8').split('\n');
  const names = lines.flatMap(
    (line) => new RegExp(`^import \\{ (\\w+) \\} from '\\./features/${feature}/`).exec(line)?.[1] ?? [],
  );
  const isOf = (line: string): boolean => names.some((name) => new RegExp(`\\b${name}\\b`).test(line));
  expect(names.length).toBeGreaterThan(0);
  writeFileSync(join(into, WIRING), lines.filter((line) => !isOf(line)).join('\n'));
}

const folderOf = (feature: string): string => `orchestrator/features/${feature}`;

describe.each(featureFolders())('without features/%s', (feature) => {
  let folder: TempDir;
  beforeAll(() => {
    folder = tempDir('crawlfleet-without-');
    copyWithout(feature, folder.path);
  });
  afterAll(() => folder.remove());

  it('the rest compiles', { timeout: TIMEOUT_MS }, async () => {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const args = [tsc, '--noEmit', '-p', 'tsconfig.build.json'];
    const { stdout } = await startCommand(process.execPath, args, { cwd: folder.path, timeoutMs: TIMEOUT_MS }).finished;
    expect(stdout).toBe('');
  });

  it('a run crawls, publishes and is proved', { timeout: TIMEOUT_MS }, async () => {
    const program = [process.execPath, folder.file('bin/orchestrator.js')] as const;
    const fleet = await makeFleet({ engine: 'sqlite', productUrl: shop.productUrl, ids: IDS, program });
    try {
      const { exitCode, report, stderr } = await fleet.dryRun();
      expect(exitCode, stderr).toBe(EXIT.complete);
      expect(report.products.stored).toBe(IDS.length);
      expect((await fleet.run('verify')).exitCode).toBe(EXIT.complete);
    } finally {
      await fleet.remove();
    }
  });
});
