/** The state that EC2's calls work on. */
import type { Clock } from '../../shared/ports/clock.ts';
import type { ConditionBoard } from '../conditions.ts';
import type { FaultBook } from '../faults.ts';
import type { AddressPool } from '../network.ts';
import type { Catalogue } from './catalogue.ts';
import type { Fleet } from './fleet.ts';
import type { MachineHost } from './machine-host.ts';
import type { TagStore } from './tag-store.ts';
import type { LaunchLedger } from './launch-ledger.ts';

export interface Ec2Context {
  clock: Clock;
  conditions: ConditionBoard;
  faults: FaultBook;
  catalogue: Catalogue;
  fleet: Fleet;
  host: MachineHost;
  tags: TagStore;
  launches: LaunchLedger;
  /** Snapshots whose image is gone. */
  snapshots: Set<string>;
  addresses: ReadonlyMap<string, AddressPool>;
}
