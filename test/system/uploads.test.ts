/**
 * F36 to F38 on real parts: a bucket that refuses, loses and damages uploads.
 *
 * @module-tag nightly
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FaultRule } from '../../sandbox/faults.ts';
import { buildBundle } from '../../userdata/bundle.ts';
import { waitFor } from '../support/processes.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox/start-sandbox.ts';
import { productIds } from '../support/shop/product.ts';
import { type Shop, startShop } from '../support/shop/start-shop.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import { type Fleet, makeFleet, readReport } from './fleet.ts';
import { expectSound } from './soundness.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 23;
const IDS = productIds(36);
/** Selects only the parts in the bucket. */
const PARTS = '.ndjson.gz';

const bundleHash = async (): Promise<string> => (await buildBundle()).sha256;

describe('a bucket that misbehaves', () => {
  let shop: Shop;
  let sandbox: TestSandbox;
  let fleet: Fleet;

  beforeAll(async () => {
    shop = await startShop({ seed: SEED, products: IDS.length });
  });
  afterAll(() => shop.stop());
  beforeEach(async () => {
    await shop.reset();
    sandbox = await startSandbox({ allowBundles: [await bundleHash()] });
  });
  afterEach(async () => {
    await fleet.remove();
    await sandbox.stop();
  });

  async function prepare(run: Record<string, unknown> = {}): Promise<void> {
    fleet = await makeFleet({
      engine: 'sqlite',
      productUrl: shop.productUrl,
      ids: IDS,
      config: { aws: { endpoint: sandbox.endpoint }, run: { deadline: '60s', ...run } },
    });
  }

  const misbehave = (...rules: FaultRule[]) => sandbox.control('POST', 'faults', rules);
  const refuse = (code: string, count: number): FaultRule => {
    return { what: 'error', action: 'PutObject', path: PARTS, code, count };
  };
  /** S3 calls of that name that were answered with that error. */
  const answers = (action: string, error: string): number =>
    readFileSync(join(sandbox.dataDir, 'sandbox.log'), 'utf8')
      .split('\n')
      .filter((line) => line.includes(`"action":"${action}"`) && line.includes(`"error":"${error}"`)).length;

  /** Every fault rule has been met. */
  async function expectAllMet(): Promise<void> {
    expect(await sandbox.control('GET', 'faults')).toEqual([]);
  }

  async function expectAllStored(): Promise<void> {
    const { report, stderr } = await fleet.dryRun();
    expect(withoutSlowBoots(report), `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      exitCode: 0,
      products: { stored: IDS.length, failed: 0 },
      instances: { launched: 3, replaced: 0 },
    });
    await expectAllMet();
    expect((await shop.stats()).requests).toBe(IDS.length);
    await expectTrueRows(fleet, SEED, IDS);
    await expectSound(fleet, report, shop);
  }

  it('F36, F37: fails in every way: everything arrives once, and what arrived with a lost reply counts', async () => {
    await prepare();
    await misbehave(
      { what: 'lost-reply', action: 'PutObject', path: PARTS, count: 3 },
      refuse('InternalError', 1),
      refuse('BadDigest', 1),
      refuse('ExpiredToken', 1),
      { what: 'lost-request', action: 'PutObject', path: PARTS, count: 1 },
      { what: 'cut-reply', action: 'GetObject', path: PARTS, count: 2 },
      { what: 'error', action: 'GetObject', path: PARTS, code: 'SlowDown', count: 3 },
      { what: 'lost-reply', action: 'PutObject', path: 'manifest', count: 1 },
    );
    await expectAllStored();
    expect(answers('PutObject', 'PreconditionFailed')).toBeGreaterThanOrEqual(3);
  });

  it('F36: refuses uploads for a while: an alarm reports it, and the results wait on the instances', async () => {
    await prepare();
    await misbehave(refuse('AccessDenied', 100_000));
    const run = fleet.start('run', '--dry-run', '--json');
    await waitFor(async () => (await alarms()).some((text) => text.includes('AccessDenied')), {
      what: 'an alarm that S3 refuses the parts',
      timeoutMs: 60_000,
    });
    await waitFor(async () => (await shop.stats()).requests === IDS.length, {
      what: 'the crawl to go on meanwhile',
      timeoutMs: 60_000,
    });
    await sandbox.control('DELETE', 'faults');
    const result = await run.finished;
    const report = readReport(result);
    expect(report, result.stderr).toMatchObject({ exitCode: 0, products: { stored: IDS.length } });
    expect((await shop.stats()).requests).toBe(IDS.length);
    await expectSound(fleet, report, shop);
  });

  it('F38: returns parts damaged, or not at all: their products are crawled again', async () => {
    await prepare();
    await misbehave(
      { what: 'wrong-byte', action: 'GetObject', path: PARTS, count: 1 },
      { what: 'error', action: 'GetObject', path: PARTS, code: 'NoSuchKey', status: 404, count: 1 },
    );
    const { report, stderr } = await fleet.dryRun();
    expect(report, `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
      exitCode: 0,
      products: { stored: IDS.length, failed: 0 },
    });
    await expectAllMet();
    const notes = report.notes.join('\n');
    expect(notes).toContain('does not have the hash in its name');
    expect(notes).toContain('the bucket has no object');
    expect((await shop.stats()).requests).toBeGreaterThan(IDS.length);
    await expectTrueRows(fleet, SEED, IDS);
    await expectSound(fleet, report, shop);
  });

  async function alarms(): Promise<string[]> {
    const rows = await fleet.query("select detail from crawlfleet_events where kind = 'alarm'").catch(() => []);
    return rows.map((row) => String(row.detail));
  }
});
