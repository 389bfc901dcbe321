import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { BillLine } from '../../../sandbox/ec2/billing.ts';
import type { Instance } from '../../../sandbox/ec2/instance.ts';
import type { Fleet } from '../../../sandbox/ec2/fleet.ts';
import { SPEC, aFleet } from './a-fleet.ts';

let clock: VirtualClock;
let fleet: Fleet;

beforeEach(() => {
  clock = new VirtualClock();
  fleet = aFleet(clock).fleet;
});
afterEach(async () => {
  const closing = fleet.close();
  await clock.advance(5_000);
  await closing;
});

async function running(): Promise<Instance> {
  const [instance] = fleet.launch(SPEC, { min: 1, max: 1 }, new Map());
  await clock.advance(100);
  return instance!;
}
const bill = (): BillLine[] => fleet.billing.lines(clock.now());

describe('the bill', () => {
  it('charges an instance and its address by the second, from running to the end', async () => {
    const { id } = await running();
    await clock.advance(90_400);
    fleet.terminate(fleet.find(id)!);
    await clock.advance(3_600_000);
    expect(bill()).toEqual([
      { id, instanceType: 't3.nano', zone: 'z', starts: 1, runningMs: 90_400, billedSeconds: 91, addressSeconds: 91 },
    ]);
  });

  it('charges at least a minute for each start', async () => {
    const instance = await running();
    await clock.advance(5_000);
    fleet.stop(instance);
    await clock.advance(600_000);
    fleet.start(instance);
    await clock.advance(10_100);
    expect(bill()).toMatchObject([{ starts: 2, runningMs: 15_000, billedSeconds: 120, addressSeconds: 15 }]);
  });

  it('charges nothing for an instance that never ran', async () => {
    const [instance] = fleet.launch(SPEC, { min: 1, max: 1 }, new Map());
    fleet.terminate(instance!);
    await clock.advance(10_000);
    expect(bill()).toEqual([]);
  });

  it('ends for an instance that AWS stops by retirement', async () => {
    const instance = await running();
    fleet.retire(instance);
    await clock.advance(2_000);
    expect(instance).toMatchObject({ state: 'stopped', reasonCode: 'Server.ScheduledStop' });
    expect(bill()).toMatchObject([{ starts: 1, runningMs: 0, billedSeconds: 60 }]);
  });
});
