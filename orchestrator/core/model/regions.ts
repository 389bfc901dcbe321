/** The regions of a run: where its instances are, and what AWS shows and refuses in each of them. */
import type { Balancer } from '../cloud/load-balancer.ts';
import type { CloudSnapshot } from './cloud-snapshot.ts';
import { allRights, type Rights } from './rights.ts';
import { regionsOf } from './run-settings.ts';
import { mapAll, type NonEmpty } from '../../../shared/domain/non-empty.ts';
import type { RunRecord } from './stores.ts';

/** What the core knows of one region at one moment. */
export interface RegionState {
  name: string;
  maxInstances: number;
  /** What EC2 shows there under the run's tag; null before its first answer. */
  cloud: CloudSnapshot | null;
  /** The balancer as the run's row names it. */
  balancer: Balancer | null;
  balancerActive: boolean;
  /** ELBv2 no longer knows the balancer that the run's row names: it has to be created again. */
  balancerGone: boolean;
  /** ELBv2 refuses to create the balancer, and no retry will change that. */
  balancerRefused: boolean;
  /** ELBv2 may have something under the run's name that its row does not name. */
  balancerMayRemain: boolean;
  /** Calls that AWS refuses for lack of keys or rights. */
  rights: Rights;
  /** AWS has not answered there for as long as an instance may be silent, while it answers in another region. */
  isOut: boolean;
}

/** The regions in the order of the configuration. */
export type Regions = NonEmpty<RegionState>;

/** The regions of a run with nothing known of AWS. */
export function regionsFromRow({ settings, balancers }: Pick<RunRecord, 'settings' | 'balancers'>): Regions {
  return mapAll(regionsOf(settings.aws), ({ region, maxInstances = Infinity }) => ({
    name: region,
    maxInstances,
    cloud: null,
    balancer: balancers[region] ?? null,
    balancerActive: false,
    balancerGone: false,
    balancerRefused: false,
    balancerMayRemain: false,
    rights: allRights(),
    isOut: false,
  }));
}

/** The region with this name, else the first one: claims of earlier versions name none. */
export const regionNamed = <T extends { name: string }>(regions: NonEmpty<T>, region: string | undefined): T =>
  regions.find(({ name }) => name === region) ?? regions[0];

/** True when one of the balancers stored with the run remains. */
export const hasBalancer = ({ balancers }: Pick<RunRecord, 'balancers'>): boolean => Object.keys(balancers).length > 0;
