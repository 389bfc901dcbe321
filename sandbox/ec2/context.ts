/**
 * The state that EC2's calls work on, and what they can see of a new instance: on AWS it takes a while until all of EC2
 * knows of a launch.
 */
import type { Clock } from '../../shared/ports/clock.ts';
import { AwsError } from '../aws-error.ts';
import type { ConditionBoard } from '../conditions.ts';
import type { FaultBook } from '../faults.ts';
import type { AddressPool } from '../network.ts';
import type { Params } from '../query-protocol.ts';
import type { Catalogue, Image } from './catalogue.ts';
import type { Fleet } from './fleet.ts';
import type { Instance } from './instance.ts';
import type { TagStore } from './tag-store.ts';
import type { TokenLedger } from './token-ledger.ts';

export interface Ec2Context {
  clock: Clock;
  conditions: ConditionBoard;
  faults: FaultBook;
  catalogue: Catalogue;
  fleet: Fleet;
  tags: TagStore;
  launches: TokenLedger<readonly Instance[]>;
  /** Ids of copied images. */
  copies: TokenLedger<string>;
  /** Snapshots whose image is gone. */
  snapshots: Set<string>;
  addresses: ReadonlyMap<string, AddressPool>;
  /** The images of another region. */
  imagesOf: (region: string) => readonly Image[];
}

/** An instance; null when it does not exist, or is not visible yet: then calls answer NotFound for it. */
export function findKnown(id: string, { fleet, clock, conditions }: Ec2Context): Instance | null {
  const instance = fleet.find(id);
  return instance && clock.now() >= instance.launchedAtMs + conditions.now.unknownMs ? instance : null;
}

/** The instances that a call names, or with no ids every visible one, in launch order. */
export function chooseInstances(ids: readonly string[], context: Ec2Context): Instance[] {
  if (ids.length > 0) return findInstances(ids, context);
  return context.fleet.all().filter(({ id }) => findKnown(id, context));
}

/** The instances with these ids; throws for malformed and unknown ones before any of them is changed. */
export function findInstances(ids: readonly string[], context: Ec2Context): Instance[] {
  const malformed = ids.find((id) => !/^i-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id));
  if (malformed !== undefined) throw new AwsError('InvalidInstanceID.Malformed', `Invalid id: "${malformed}"`);
  const found = new Map(ids.map((id) => [id, findKnown(id, context)]));
  const known = [...found.values()].filter((instance) => instance !== null);
  const unknown = ids.filter((id) => found.get(id) === null);
  if (unknown.length === 0) return known;
  const [noun, verb] = unknown.length === 1 ? ['ID', 'does'] : ['IDs', 'do'];
  throw new AwsError('InvalidInstanceID.NotFound', `The instance ${noun} '${unknown.join(', ')}' ${verb} not exist`);
}

/** The instance that a call names; throws for a malformed and an unknown one. */
export function findInstance(params: Params, context: Ec2Context): Instance {
  const id = params.need('InstanceId');
  const [instance] = findInstances([id], context);
  if (instance === undefined) throw new Error(`no instance ${id}`);
  return instance;
}

/** The tags as visible to calls: none at first. */
export function seenTags({ fleet, tags, conditions, clock }: Ec2Context): Pick<TagStore, 'of' | 'entries'> {
  const young = new Set(
    fleet
      .all()
      .filter((i) => clock.now() < i.launchedAtMs + conditions.now.untaggedMs)
      .flatMap((i) => [i.id, i.volumeId, i.interfaceId]),
  );
  return {
    of: (id) => (young.has(id) ? new Map<string, string>() : tags.of(id)),
    entries: () => tags.entries().filter(({ resourceId }) => !young.has(resourceId)),
  };
}

/** Every mutating EC2 call stops here for a dry run. */
export function refuseDryRun(params: Params): void {
  if (params.flag('DryRun'))
    throw new AwsError('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412);
}
