/**
 * F36 to F38 on real parts: a bucket that refuses, loses and damages uploads.
 *
 * @module-tag nightly
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FaultRule } from '../../sandbox/faults.ts';
import { waitFor } from '../support/processes.ts';
import { productIds } from '../support/shop/product.ts';
import { endOf } from './fleet.ts';
import { expectAllStored, expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 23;
const IDS = productIds(36);
/** Selects only the parts in the bucket. */
const PARTS = '.ndjson.gz';

describe('a bucket that misbehaves', () => {
  const { shop, fleet, sandbox, startSandbox, open } = useStage({ seed: SEED, products: IDS.length });

  beforeEach(async () => {
    await startSandbox();
    await open(IDS, { run: { deadline: '60s' } });
  });

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

  it('F36, F37: fails in every way: everything arrives once, and what arrived with a lost reply counts', async () => {
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
    const report = expectAllStored(await fleet.dryRun(), IDS.length, { launched: 3, replaced: 0 });
    await expectAllMet();
    expect((await shop.stats()).requests).toBe(IDS.length);
    await expectTrueRows(fleet, SEED, IDS);
    await expectSound(fleet, report, shop);
    expect(answers('PutObject', 'PreconditionFailed')).toBeGreaterThanOrEqual(3);
  });

  it('F36: refuses uploads for a while: an alarm reports it, and the results wait on the instances', async () => {
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
    const report = expectAllStored(await endOf(run), IDS.length);
    expect((await shop.stats()).requests).toBe(IDS.length);
    await expectSound(fleet, report, shop);
  });

  it('F38: returns parts damaged, or not at all: their products are crawled again', async () => {
    await misbehave(
      { what: 'wrong-byte', action: 'GetObject', path: PARTS, count: 1 },
      { what: 'error', action: 'GetObject', path: PARTS, code: 'NoSuchKey', status: 404, count: 1 },
    );
    const report = expectAllStored(await fleet.dryRun(), IDS.length);
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
