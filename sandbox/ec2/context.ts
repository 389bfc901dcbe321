/** What EC2's calls work on. */
import type { AddressPool } from '../network.ts';
import type { Catalogue } from './catalogue.ts';
import type { Fleet } from './fleet.ts';
import type { MachineHost } from './machine-host.ts';
import type { TagStore } from './tag-store.ts';
import type { LaunchLedger } from './launch-ledger.ts';

export interface Ec2Context {
  catalogue: Catalogue;
  fleet: Fleet;
  host: MachineHost;
  tags: TagStore;
  launches: LaunchLedger;
  addresses: ReadonlyMap<string, AddressPool>;
}
