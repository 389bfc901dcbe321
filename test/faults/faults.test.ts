/** The short form of `npm run faults`: every fault alone, samples of pairs, triples and crash points, past failures. */
import { describe, expect, it } from 'vitest';
import { FAULTS } from './catalogue.ts';
import { campaignSeed } from './campaign-seed.ts';
import { type FaultPlan, formatPlan, pairPlans, parsePlan, randomPlans, singlePlans } from './plan.ts';
import { play } from './play.ts';

const { FAULT_SEED } = process.env;
const SEED = campaignSeed(FAULT_SEED, Date.now());
const BATCH = 20;
/** With a given seed it is a search, and worth more time. */
const BATCHES = Array.from({ length: FAULT_SEED ? 20 : 2 }, (_, i) => {
  const [from, to] = [i * BATCH, (i + 1) * BATCH];
  return [`runs ${from + 1} to ${to}`, from, to] as const;
});

async function expectSound(plans: readonly FaultPlan[]): Promise<void> {
  for (const plan of plans) {
    const { violations } = await play(plan);
    expect(violations, `npm run faults -- --replay "${formatPlan(plan)}"`).toEqual([]);
  }
}

/** Kills around each `every`th effect of a run. */
async function expectSoundKills(kind: Pick<FaultPlan, 'discovery' | 'hosts'>, every: number): Promise<void> {
  const run = { seed: 1, ...kind, faults: [] };
  const { effects } = await play({ ...run, crash: null });
  const sample = effects.map((_, at) => at).filter((at) => at % every === 0);
  const sides = ['before', 'after'] as const;
  await expectSound(sample.flatMap((at) => sides.map((side) => ({ ...run, crash: { at, side } }))));
}

describe('a run keeps its invariants', () => {
  it.each(Object.keys(FAULTS))('under %s at each of its moments', async (name) => {
    await expectSound(singlePlans().filter((plan) => plan.faults[0]!.name === name));
  });

  it('under pairs of faults', async () => {
    await expectSound(pairPlans().filter((_, i) => i % 4 === 0));
  });

  it.each(BATCHES)(`under random faults of seed ${SEED}: %s`, async (_, from, to) => {
    await expectSound(randomPlans(SEED, to).slice(from));
  });

  it('when the main server is killed before or after an effect', () =>
    expectSoundKills({ discovery: false, hosts: false }, 7));

  it('when the main server of a run of many hosts is killed', () =>
    expectSoundKills({ discovery: false, hosts: true }, 7));

  it('when the main server of a discovery is killed', { tags: ['nightly'], timeout: 600_000 }, () =>
    expectSoundKills({ discovery: true, hosts: false }, 5),
  );

  it.each([
    // A young machine that EC2 does not show yet was taken for gone.
    '100172 F8@L+0',
    '1141 F8@L+400',
    '2046 F8@L+5150 F43@T+4953',
    // A counter that a given-up instance repeats.
    '100249 F17@D+1901 F39@U+0 F28@C+0',
    // A claim with its instance stored, but not its move to `pending`, was never checked again.
    '2026112202342 F36@B+5016 F9@B+1006 F47@R+14',
    '2026112203960 F39@U+5143 F47@M+0 F3@B+2999',
    // An instance in memory kept its old pace for one more request when robots.txt required a longer one.
    '2026112203760 F41@L+0 F30@P+2529 F42@U+782',
    '2026112205050 F30@C+3470 F7@L+3110',
    '2026112205201 F20@C+0 F4@C+0 F30@C+5122',
    '2026112209118 F7@P+3384 F30@C+5510 F39@K+4780',
    // A launch without an answer, retried and refused: its machine still came up.
    '1618033903543 F2@P+0 F6@L+0 F8@L+0',
    // A heartbeat that was answered with 503 and repeated is no replay.
    '2645751309456 F36@K+0 F3@R+4343 F39@B+4887',
    // A machine whose user data never ran has no timer: without its main server, gc ends it.
    '2026112209093 F10@P+0 F42@U+4605',
    '2026112209518 F10@C+2793 F42@U+4104',
    // A result table that refuses rows after the run is over was expected to have refused its rows.
    '10100113 F13@C+0 F49@K+1466',
    // Rows that an instance makes up of its own products are in no result table when the run is held.
    '20100368 F59@C+3719 F49@C+0 F58@C+3663',
    // A stopped machine that EC2 refuses to end has no timer: the run says that it is left behind.
    '20300209 F19@T+0 F59@B+2298 F30@C+799',
  ])('where it once failed: %s', async (line) => {
    await expectSound([parsePlan(line)]);
  });
});

describe('the seed of a campaign', () => {
  it('is fixed by default, the one given, or the date', () => {
    const nowMs = Date.UTC(2026, 10, 2, 23, 59);
    expect(campaignSeed('', nowMs)).toBe(campaignSeed(undefined, nowMs + 86_400_000));
    expect(campaignSeed('7301', nowMs)).toBe(7301);
    expect(campaignSeed('date', nowMs)).toBe(20_261_102);
    for (const text of ['often', '-1', '1.5', '1e9', '2026110223'])
      expect(() => campaignSeed(text, nowMs)).toThrow(text);
  });

  it('draws runs that no other seed draws, the same ones first', () => {
    const few = randomPlans(7, 3);
    expect(randomPlans(7, 5).slice(0, 3)).toEqual(few);
    expect(few.map((plan) => plan.seed)).toEqual([700_000, 700_001, 700_002]);
    expect(() => randomPlans(7, 100_001)).toThrow('several seeds');
  });
});

describe('a replay line', () => {
  it('is read as it was written', () => {
    const line = '7 F19@C+1500 F1@L+0 kill-after@12';
    expect(formatPlan(parsePlan(line))).toBe(line);
  });

  it('plays the same run each time', async () => {
    const plan = parsePlan('100249 F17@D+1901 F39@U+0 F28@C+0');
    const [first, second] = [await play(plan), await play(plan)];
    expect([second.end, second.virtualMs, second.effects]).toEqual([first.end, first.virtualMs, first.effects]);
  });

  it.each(['', 'x F1@L+0', '1 F99@L+0', '1 F1'])('is refused when it is invalid: %j', (line) => {
    expect(() => parsePlan(line)).toThrow(/replay line/);
  });
});
