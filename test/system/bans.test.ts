/**
 * F28 and F29 on real parts: the shop bans addresses or requests a delay, and checks the fleet's reaction.
 *
 * @module-tag nightly
 */
import { describe, expect, it } from 'vitest';
import type { RunReport } from '../../orchestrator/control/model/report.ts';
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
const SCRIPT: BehaviourInput = { type: 'one-line-script' };
/** Beyond doubt: no canary page is requested. */
const TOO_MANY: BehaviourInput = { type: 'status', status: 429, retryAfter: 'soon, please' };
const UNPRICED: BehaviourInput = { type: 'missing-field', fields: ['price'], headChars: 90_000 };
/** How a site refuses, and the rule by which an instance detects it. */
const SHAPES: [BehaviourInput, string][] = [
  [FORBIDDEN, 'status-403'],
  [{ type: 'redirect', to: '/verify' }, 'redirect-check'],
  [{ type: 'login' }, 'log-in-page'],
  [SCRIPT, 'script-shell'],
  [{ type: 'captcha' }, 'captcha'],
  [{ type: 'status', status: 429, retryAfter: '36000' }, 'retry-after'],
  [TOO_MANY, 'status-429'],
];
/** Two at a time: bans of more than a third of a fleet of eight would open the circuit. */
const PAIRS = [0, 2, 4, 6].map((at): [string, typeof SHAPES] => {
  const pair = SHAPES.slice(at, at + 2);
  return [pair.map(([, rule]) => rule).join(' and '), pair];
});
/**
 * Requests that a banned address may send: a sign beyond doubt needs no second one, a refusal one for a canary page.
 * 404 is no sign at all: a canary page is requested after fifty, or at the end of the shard.
 */
const mayAsk = (rule: string): number =>
  rule === 'no-answer' ? 51 : /^(status-4(?!29)|redirect-|log-in|script-|captcha)/.test(rule) ? 2 : 1;

/** Bans the first address that reaches its sixth request. */
const forOne = (answer: BehaviourInput, coolDownMs: number | null = null): BanPolicy => {
  return { when: { request: 6 }, coolDownMs, atMost: 1, answer };
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
    const { bans } = await shop.stats();
    for (const { address, rule } of report.bans)
      expect(bans[address ?? '']?.mostRefused ?? 0, `${address} ${rule}`).toBeLessThanOrEqual(mayAsk(rule));
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

  it.each(PAIRS)(
    'F28, F29: two of eight addresses are refused, by %s: they sleep, their queues move',
    async (_, shapes) => {
      await prepareEight();
      const instances = { launched: 8, replaced: 0, terminated: 8 };
      const products = { stored: MANY_IDS.length, gone: 0, failed: 0 };
      const refuseTwo = banAmongEight(...shapes.map(([answer]) => forOne(answer)));
      const report = await runTo({ ...ALL_STORED, products, instances }, MANY_IDS, 300, refuseTwo);
      expect(report.bans.map((ban) => ban.rule).sort()).toEqual(shapes.map(([, rule]) => rule).sort());
      for (const { evidence } of report.bans) expect(evidence.url).toContain('/item/');
      const refused = Object.keys((await shop.stats()).bans);
      expect(new Set(refused)).toEqual(new Set(report.bans.map((ban) => ban.address)));
    },
  );

  it('F28: more than a third of the addresses are refused: the circuit opens, and the report has their number', async () => {
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

  it('F28: ordinary pages cause no ban: products that redirect by script, and large heads without a price', async () => {
    await prepare({}, { max_failed: '30%' });
    const elsewhere = ['P00005', 'P00019', 'P00033'];
    const unpriced = ['P00009', 'P00021', 'P00040'];
    await shop.setRules([
      ...elsewhere.map((id) => ({ id, do: SCRIPT })),
      ...unpriced.map((id) => ({ id, do: UNPRICED })),
    ]);
    const odd = [...elsewhere, ...unpriced];
    const products = { stored: IDS.length - odd.length, gone: 0, failed: odd.length, reasons: { parse: odd.length } };
    await runTo(
      { state: 'completed', exitCode: 0, products, bans: [], instances: { replaced: 0 } },
      IDS.filter((id) => !odd.includes(id)),
    );
    const log = await shop.log();
    for (const id of elsewhere)
      expect(log.filter(({ path }) => path.endsWith(`/${id}`)).length, id).toBeLessThanOrEqual(2);
  });

  it('F28: an address returns after its cool-down, and not before', async () => {
    await prepare({ ban: { cool_down: '3s' }, interval: '400ms' });
    await shop.setBanPolicies([{ ...forOne(TOO_MANY, 2_800), when: { request: 4 } }]);
    const report = await runTo(ALL_STORED, IDS, 400);
    const [address] = Object.keys((await shop.stats()).bans);
    const requests = (await shop.log()).filter((entry) => entry.kind === 'page' && entry.address === address);
    const bannedAtMs = (await shop.stats()).bans[address!]!.bannedAtMs!;
    const early = requests.filter((entry) => entry.atMs > bannedAtMs && entry.atMs < bannedAtMs + 2_990);
    expect(early).toEqual([]);
    // Whether any work is left for it by then depends on the speed of the other instances.
    expect(report.bans[0]?.overAtMs).toEqual(expect.any(Number));
  });
});
