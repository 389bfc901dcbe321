/**
 * F28 and F29 on real parts: the shop bans addresses or requests a delay, and checks the fleet's reaction.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import type { RunReport } from '../../orchestrator/core/model/report.ts';
import type { BanPolicy } from '../support/shop/bans.ts';
import type { BehaviourInput } from '../support/shop/behaviour-schema.ts';
import { expectedRow, productIds } from '../support/shop/product.ts';
import { withoutSlowBoots } from '../support/slow-boots.ts';
import { waitFor } from '../support/processes.ts';
import { endOf } from './fleet.ts';
import { expectSound } from './soundness.ts';
import { useStage } from './stage.ts';
import { expectTrueRows } from './stored-rows.ts';

const SEED = 11;
const IDS = productIds(45);
/** Enough that a fleet of eight still crawls when its last instance has come up. */
const MANY_IDS = productIds(120);
const INTERVAL_MS = 200;
const CANARIES = ['P00001', 'P00002'].map((id) => ({ id, fields: { title: expectedRow(SEED, id).title } }));

const FORBIDDEN: BehaviourInput = { type: 'status', status: 403 };
/** Beyond doubt: no canary page is requested. */
const TOO_MANY: BehaviourInput = { type: 'status', status: 429, retryAfter: 'soon, please' };
/**
 * Requests that a banned address may send before it stops: after a refusal one for a canary page, for 404 up to fifty.
 */
const MAY_ASK: Record<string, number> = { 'status-403': 2, captcha: 2, 'status-429': 1, 'no-answer': 51 };

/** Bans the first address that reaches its sixth request. */
const forOne = (answer: BehaviourInput): BanPolicy => {
  return { when: { request: 6 }, atMost: 1, answer };
};

describe('bans', () => {
  const { shop, fleet, open } = useStage({ seed: SEED, products: MANY_IDS.length });

  const prepare = (site: Record<string, unknown> = {}, run: Record<string, unknown> = {}, ids = IDS) =>
    open(ids, { site: { ban: { cool_down: '10m' }, ...site }, run: { deadline: '60s', ...run } });

  /** Runs to the end, which must be sound, without a wrong row and without hammering. */
  async function runTo(
    expected: Record<string, unknown>,
    stored?: readonly string[],
    intervalMs = INTERVAL_MS,
    meanwhile: () => Promise<void> = () => Promise.resolve(),
  ): Promise<RunReport> {
    const run = fleet.start('run', '--dry-run', '--json');
    await meanwhile();
    const { exitCode, report, stderr } = await endOf(run);
    expect(withoutSlowBoots(report), `${report.notes.join('\n')}\n${stderr}`).toMatchObject(expected);
    expect(exitCode).toBe(report.exitCode);
    const { refused } = await shop.stats();
    for (const { address, rule } of report.bans)
      expect(refused[address ?? ''] ?? 0, `${address} ${rule}`).toBeLessThanOrEqual(MAY_ASK[rule]!);
    await expectTrueRows(fleet, SEED, stored);
    await expectSound(fleet, report, shop, intervalMs);
    return report;
  }

  const ALL_STORED = { state: 'completed', exitCode: 0, products: { stored: IDS.length, gone: 0, failed: 0 } };

  const prepareEight = () =>
    prepare({ canaries: CANARIES, interval: '300ms' }, { min_instances: 8, deadline: '90s' }, MANY_IDS);

  /** Bans when all eight are at work: the circuit counts the instances that have come up. */
  const banAmongEight =
    (...policies: Omit<BanPolicy, 'when'>[]) =>
    async (): Promise<void> => {
      await waitFor(async () => Object.keys((await shop.stats()).addresses).length >= 8, {
        what: 'eight addresses to crawl',
        timeoutMs: 60_000,
      });
      await shop.setBanPolicies(policies.map((policy) => ({ ...policy, when: { request: 1 } })));
    };

  it('F28, F29: two of eight addresses are refused: they pause, and their queues are reassigned', async () => {
    await prepareEight();
    const instances = { launched: 8, replaced: 0, terminated: 8 };
    const products = { stored: MANY_IDS.length, gone: 0, failed: 0 };
    const refuseTwo = banAmongEight(forOne({ type: 'captcha' }), forOne(TOO_MANY));
    const report = await runTo({ ...ALL_STORED, products, instances }, MANY_IDS, 300, refuseTwo);
    expect(report.bans.map((ban) => ban.rule).sort()).toEqual(['captcha', 'status-429']);
    for (const { evidence } of report.bans) expect(evidence.url).toContain('/item/');
    const refused = Object.keys((await shop.stats()).refused);
    expect(new Set(refused)).toEqual(new Set(report.bans.map((ban) => ban.address)));
  });

  it('F28: more than a third of the addresses are refused: the circuit breaker opens, and the report counts them', async () => {
    await prepareEight();
    const refuseFour = banAmongEight({ ...forOne(FORBIDDEN), atMost: 4 });
    const { products, notes } = await runTo({ state: 'banned', exitCode: 18 }, undefined, 300, refuseFour);
    expect(products.stored).toBeGreaterThanOrEqual(8);
    expect(products.reasons).toEqual({ banned: products.failed });
    expect(notes.join('\n')).toMatch(/has banned [34] of 8 addresses within/);
  });

  it('F28: no product is gone because a banned address gets 404', async () => {
    // The other instances may have finished by then: another address takes over.
    await prepare({ canaries: CANARIES, on_ban: 'replace' });
    await shop.setBanPolicies([forOne({ type: 'status', status: 404 })]);
    await runTo({ ...ALL_STORED, bans: [{ rule: 'no-answer' }] }, IDS);
  });
});
