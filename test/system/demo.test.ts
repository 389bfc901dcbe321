/** `npm run demo`, as a newcomer runs it: to its end, and with Ctrl-C in the middle. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { EXIT } from '../../shared/domain/exit-codes.ts';
import {
  findLeftovers,
  killLeftovers,
  MARKER_VARIABLE,
  type RunningCommand,
  startCommand,
  waitFor,
} from '../support/processes.ts';
import { SHOP_MAPPING, expectedRow, productIds } from '../support/shop/product.ts';
import { type TempDir, tempDir } from '../support/temp-dir.ts';

const DEMO = fileURLToPath(new URL('../../examples/demo/demo.ts', import.meta.url));

let folder: TempDir;
let marker: string;
beforeEach(() => {
  folder = tempDir();
  marker = randomUUID();
});
afterEach(() => {
  for (const text of [marker, folder.path]) killLeftovers(text);
  folder.remove();
});

function startDemo(): RunningCommand {
  const options = { cwd: folder.path, env: { [MARKER_VARIABLE]: marker }, timeoutMs: 150_000 };
  return startCommand(process.execPath, [DEMO], options);
}

/** Instances get an environment of their own, so they are also searched by the demo's folder. */
function leftovers(): string[] {
  return [marker, folder.path].flatMap((text) => findLeftovers(text).map(({ command }) => command));
}

function pathIn(stdout: string, label: string): string {
  return new RegExp(`^${label} +(/.+)$`, 'm').exec(stdout)?.[1] ?? '';
}

it('stores every product politely and leaves nothing behind but the rows and the report', async () => {
  const { exitCode, stdout, stderr } = await startDemo().finished;
  expect(exitCode, `${stdout}\n${stderr}`).toBe(EXIT.complete);
  expect(stdout).toContain('The shop counted 400 requests; gaps were never under the interval of 200 ms');
  expect(existsSync(pathIn(stdout, 'Report'))).toBe(true);

  const database = new Database(pathIn(stdout, 'Database'), { readonly: true });
  try {
    const columns = Object.keys(SHOP_MAPPING.fields).join(', ');
    const rows = database.prepare(`select product_id, ${columns} from product_snapshots order by product_id`).all() as {
      product_id: string;
      crumbs: string;
    }[];
    const read = rows.map((row) => ({ ...row, crumbs: JSON.parse(row.crumbs) as unknown }));
    expect(read).toEqual(productIds(400).map((id) => ({ product_id: id, ...expectedRow(1, id) })));
  } finally {
    database.close();
  }
  expect(leftovers()).toEqual([]);
});

it('ends everything it has started after Ctrl-C', { tags: ['nightly'] }, async () => {
  const demo = startDemo();
  await waitFor(() => /\b[1-9]\d* stored/.test(demo.stderr()), { what: 'the first stored product', timeoutMs: 60_000 });
  demo.kill('SIGINT', 'group');
  const { exitCode, stdout } = await demo.finished;
  expect(stdout).toContain('Ending the demo');
  expect(exitCode, stdout).toBe(EXIT.interrupted);
  await waitFor(() => leftovers().length === 0, { what: 'every process to end', timeoutMs: 10_000 });
  const shopUrl = /at (http:\/\/127\.0\.0\.1:\d+)/.exec(stdout)![1]!;
  await expect(fetch(shopUrl)).rejects.toThrow('fetch failed');
});
