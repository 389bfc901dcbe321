/** What must hold at the end of every run, whatever failed in it. */
import { expect } from 'vitest';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import { checkInvariants } from '../support/invariants/check-all.ts';
import type { Violation } from '../support/invariants/history.ts';
import { readHistory } from '../support/invariants/read-history.ts';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import { openDatabase } from '../../orchestrator/core/db/connect.ts';
import { createStores } from '../../orchestrator/core/db/create-stores.ts';
import { readVerifyFacts } from '../../orchestrator/core/db/verify-queries.ts';
import type { Shop } from '../support/shop/start-shop.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import type { Fleet, RunEnd } from './fleet.ts';
import { features } from '../support/features.ts';

/**
 * Each planned product has exactly one outcome, `verify` agrees with ledger, manifests, parts and rows, every instance
 * is gone, and no address sent the shop more than one request per `intervalMs`, by the shop's own clock.
 */
export async function expectSound(fleet: Fleet, report: RunReport, shop: Shop, intervalMs = 200): Promise<void> {
  const { planned, stored, gone, failed, reasons } = report.products;
  expect(stored + gone + failed).toBe(planned);
  expect(Object.values(reasons).reduce((sum, count) => sum + count, 0)).toBe(failed);
  expect(report.instances.terminated).toBe(report.instances.launched);
  expect((await shop.stats()).minGapMs ?? Infinity).toBeGreaterThanOrEqual(intervalMs);
  const proof = await fleet.run('verify', '--json');
  expect(proof.exitCode, proof.stdout).toBe(0);
  expect(fleet.leftovers()).toEqual([]);
  expect(await brokenInvariants(fleet, report.run)).toEqual([]);
}

/** The run has ended with exit 0 and a row for each product; boots that were too slow do not count. */
export function expectAllStored({ report, stderr }: RunEnd, products: number, instances = {}): RunReport {
  expect(withoutSlowBoots(report), `${report.notes.join('\n')}\n${stderr}`).toMatchObject({
    exitCode: 0,
    products: { planned: products, stored: products, failed: 0 },
    instances,
  });
  return report;
}

/** Maximum time without a main server: tests kill it. */
const OUTAGE_MS = 30_000;

/** The invariants of the fault tests, over what the database records of a real run. */
async function brokenInvariants(fleet: Fleet, runId: string): Promise<Violation[]> {
  const db = await openDatabase(fleet.databaseUrl);
  try {
    const rows = { ...createStores(db, features).of(runId), clock: systemClock };
    const history = await readHistory(rows, await readVerifyFacts(db, runId), { outageMs: OUTAGE_MS });
    return checkInvariants(history);
  } finally {
    await db.close();
  }
}
