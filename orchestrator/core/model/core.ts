/** What the control core works with: the stores of its run, under the fence of this main server, and other ports. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { Logger } from 'pino';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import type { NonEmpty } from '../../../shared/domain/non-empty.ts';
import type { Random } from '../../../shared/ports/random.ts';
import type { Compute, SubnetInfo } from '../cloud/compute.ts';
import type { BalancerScheme, LoadBalancer } from '../cloud/load-balancer.ts';
import type { OfferSender } from '../cloud/offers.ts';
import type { RobotsPolicy } from '../../../shared/domain/robots-matcher.ts';
import type { TokenBucket } from './token-bucket.ts';
import type { PartResults } from './part-results.ts';
import type { InstanceRecord, PartRecord, RunReader, RunRecord, RunStores } from './stores.ts';
import type { Heartbeat, Orders } from '../../../shared/wire/callbacks.ts';
import type { Signatures } from '../../../shared/wire/signature.ts';
import type { ProcessState } from './process-state.ts';

export interface Core extends RunStores {
  runId: string;
  clock: Clock;
  random: Random;
  log: Logger;
  /** The regions in the order of the configuration. */
  regions: NonEmpty<RegionPorts>;
  objects: ObjectStore;
  /** The results of a part in this bucket. Throws `object-missing` and `object-corrupt`. */
  readPart: (
    objects: ObjectStore,
    part: Pick<PartRecord, 'key' | 'sha256' | 'sizeBytes' | 'products'>,
  ) => Promise<PartResults>;
  offers: OfferSender;
  signatures: Signatures;
  /** The fleet's one copy of robots.txt. */
  robots: { readonly policy: RobotsPolicy | null };
  /** What every launch needs, prepared on first use. */
  launchTemplate(): Promise<LaunchTemplate>;
  /** Raises an alarm: writes it as an event and to the log. */
  alarm(detail: string, at?: EpochId): Promise<void>;
  /** Runs loads one after the other: two at once would only wait for each other's rows. */
  oneAtATime: <T>(work: () => Promise<T>) => Promise<T>;
  processState: ProcessState;
  /** What the user sends to the site as a secret. Omitted: nothing. */
  secrets?: {
    /** What the reply to this heartbeat has for its sender. */
    encryptedFor(record: InstanceRecord, heartbeat: Heartbeat): Pick<Orders, 'secrets'>;
  };
}

/** The time, and since when this process counts the silence of instances. */
export const momentOf = ({ clock, processState }: Pick<Core, 'clock' | 'processState'>) => ({
  nowMs: clock.now(),
  silentFromMs: processState.silentFromMs,
});

/** The run's row as it is now. Throws when the database has lost it. */
export async function storedRun({ run }: Pick<RunReader, 'run'>): Promise<RunRecord> {
  const row = await run.get();
  if (row === null) throw new Error('the run has vanished from the database');
  return row;
}

/** EC2 and ELBv2 in one region. */
export interface RegionPorts {
  name: string;
  compute: Compute;
  balancers: LoadBalancer;
  /**
   * Resolves when RunInstances may be called: AWS lets 5 through at once, then 2 a second; slower while it throttles.
   */
  launchTurn: Pick<TokenBucket, 'take' | 'throttled' | 'answered'>;
}

/** An object in the bucket that instances read, and its hash. */
export interface ObjectName {
  key: string;
  sha256: string;
}

/** What all launches of a run have in common. */
export interface LaunchTemplate {
  owner: string;
  /** Those in which instances can be launched; never empty. */
  regions: RegionTemplate[];
  /** Types to try, in order; all of the image's architecture. */
  instanceTypes: string[];
  bundle: ObjectName;
  /** What all instances crawl by. */
  crawlSettings: ObjectName;
  /** Lines for the start-up of a run. */
  notes?: string[];
}

/** What the launches in one region have in common. */
export interface RegionTemplate {
  name: string;
  imageId: string;
  subnets: SubnetInfo[];
  securityGroupIds: string[];
  /** How the balancer is created; by default internal, in the security groups of the instances. Null for none. */
  balancer?: { existing: string | null; scheme: BalancerScheme; securityGroupIds: string[] } | null;
}
