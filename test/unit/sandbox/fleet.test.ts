import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Fleet } from '../../../sandbox/ec2/fleet.ts';
import type { Instance, LaunchSpec } from '../../../sandbox/ec2/instance.ts';
import type { MachineSpec } from '../../../sandbox/ec2/machine.ts';
import { TokenLedger } from '../../../sandbox/ec2/token-ledger.ts';
import { SPEC, aFleet } from './a-fleet.ts';

let clock: VirtualClock;
let fleet: Fleet;
let on: MachineSpec[];
let off: string[];

beforeEach(() => {
  clock = new VirtualClock();
  ({ fleet, on, off } = aFleet(clock));
});
afterEach(async () => {
  const closing = fleet.close();
  await clock.advance(5_000);
  await closing;
});

const launch = (changes: Partial<LaunchSpec> = {}, count = { min: 1, max: 1 }): Instance[] =>
  fleet.launch({ ...SPEC, ...changes }, count, new Map());

describe('a fleet', () => {
  it('boots a machine only when the instance becomes running', async () => {
    const [instance] = launch();
    expect([instance!.state, on]).toEqual(['pending', []]);
    await clock.advance(100);
    expect(instance!.state).toBe('running');
    expect(on).toMatchObject([{ id: instance!.id, address: '127.20.16.4', publicAddress: '127.20.16.4' }]);
  });

  it('launches as many instances as there are addresses, and none below MinCount', () => {
    expect(launch({}, { min: 1, max: 5 })).toHaveLength(3);
    expect(() => launch()).toThrow(expect.objectContaining({ code: 'InsufficientFreeAddressesInSubnet' }) as Error);
  });

  it('never boots an instance that was terminated while pending', async () => {
    const [instance] = launch();
    fleet.terminate(instance!);
    await clock.advance(10_000);
    expect([instance!.state, on]).toEqual(['terminated', []]);
  });

  it('shows terminated only when the machine is off, and forgets the instance after a minute', async () => {
    const [instance] = launch();
    await clock.advance(100);
    fleet.terminate(instance!);
    await clock.advance(1_999);
    expect(instance!.state).toBe('shutting-down');
    await clock.advance(1);
    expect([instance!.state, off]).toEqual(['terminated', [instance!.id]]);
    await clock.advance(59_999);
    expect(fleet.find(instance!.id)).toBe(instance);
    await clock.advance(1);
    expect(fleet.find(instance!.id)).toBeNull();
  });

  it('reuses addresses of terminated instances', async () => {
    const [first] = launch({}, { min: 3, max: 3 });
    fleet.terminate(first!);
    await clock.advance(2_000);
    expect(launch()[0]!.address).toBe(first!.address);
  });

  it.each([
    ['stop', 'stopped'],
    ['terminate', 'terminated'],
  ] as const)(
    'with shutdown behavior %s ends %s when an instance powers itself off',
    async (shutdownBehavior, state) => {
      const [instance] = launch({ shutdownBehavior });
      await clock.advance(100);
      fleet.poweredOff(instance!.id);
      await clock.advance(2_000);
      expect([instance!.state, instance!.reasonCode]).toEqual([state, 'Client.InstanceInitiatedShutdown']);
    },
  );

  it('terminates an instance that is stopping, once', async () => {
    const [instance] = launch();
    await clock.advance(100);
    fleet.stop(instance!);
    await clock.advance(1_000);
    fleet.terminate(instance!);
    expect(fleet.terminate(instance!).previous).toBe('shutting-down');
    await clock.advance(5_000);
    expect(instance!.state).toBe('terminated');
  });
});

describe('client tokens', () => {
  it('find the same launch in their zone only, and refuse other parameters', () => {
    const ledger = new TokenLedger<Instance[]>();
    const instances = launch();
    ledger.record('t', 'zone-a', 'print', instances);
    expect(ledger.find('t', 'zone-a', 'print')).toBe(instances);
    expect(ledger.find('t', 'zone-c', 'print')).toBeNull();
    expect(() => ledger.find('t', 'zone-a', 'other')).toThrow(
      expect.objectContaining({ code: 'IdempotentParameterMismatch' }) as Error,
    );
  });
});
