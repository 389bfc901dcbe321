/** A fleet of three addresses with machines that only record calls. */
import type { VirtualClock } from '../../support/virtual-clock.ts';
import { ConditionBoard } from '../../../sandbox/conditions.ts';
import { Fleet } from '../../../sandbox/ec2/fleet.ts';
import type { LaunchSpec } from '../../../sandbox/ec2/instance.ts';
import type { Machine, MachineSpec } from '../../../sandbox/ec2/machine.ts';
import { TagStore } from '../../../sandbox/ec2/tag-store.ts';
import { AddressPool } from '../../../sandbox/network.ts';

const network = {
  cidr: '127.20.0.0/16',
  address: (offset: number) => `127.20.${offset >> 8}.${offset & 255}`,
  release: () => Promise.resolve(),
};
export const SPEC: LaunchSpec = {
  imageId: 'ami-1',
  instanceType: 't3.nano',
  architecture: 'x86_64',
  subnetId: 'subnet-1',
  vpcId: 'vpc-1',
  zone: 'z',
  securityGroupIds: [],
  instanceProfile: null,
  userData: '',
  shutdownBehavior: 'stop',
  publicAddress: true,
  metadata: { httpTokens: 'required', hopLimit: 1 },
  keyName: null,
  clientToken: null,
  terminationProtection: false,
};

/** Terminated instances remain visible for a minute; a machine takes two seconds to power off. */
export function aFleet(clock: VirtualClock): { fleet: Fleet; on: MachineSpec[]; off: string[] } {
  const on: MachineSpec[] = [];
  const off: string[] = [];
  const makeMachine = (spec: MachineSpec): Machine => ({
    pid: null,
    folder: '',
    powerOn: () => void on.push(spec),
    powerOff: async () => {
      await clock.sleep(2_000);
      off.push(spec.id);
    },
    consoleOutput: () => Buffer.of(),
    inject: () => false,
    hasAgent: false,
    execute: () => {
      throw new Error('no command is run here');
    },
    close: () => undefined,
  });
  const addresses = new Map([['subnet-1', new AddressPool(network, 4_100, 3)]]);
  const conditions = new ConditionBoard();
  conditions.change({ pendingMs: 100, terminatedShownMs: 60_000 }, 0);
  const fleet = new Fleet({ clock, makeMachine, tags: new TagStore(), region: 'r', addresses, conditions });
  return { fleet, on, off };
}
