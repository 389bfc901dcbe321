/**
 * Finds the machine that EC2 shows for a claim, with an index for each answer of EC2: a fleet of thousands looks up
 * every one.
 */
import type { CloudInstance } from '../../cloud/compute.ts';
import { TAG } from '../../cloud/compute.ts';
import type { InstanceRecord } from '../model/stores.ts';
import type { World } from '../model/world.ts';

interface CloudIndex {
  byId: ReadonlyMap<string, CloudInstance>;
  /** By `<slot> <epoch>` of the tags; null until the first look-up, which only a claim without an id needs. */
  byTags: ReadonlyMap<string, CloudInstance> | null;
}

const known = new WeakMap<readonly CloudInstance[], CloudIndex>();

/**
 * By the id that EC2 gave; before that by the tags of the claim. Undefined when EC2 does not show it, or was not polled
 * yet.
 */
export function findCloudInstance(world: Pick<World, 'cloud'>, record: InstanceRecord): CloudInstance | undefined {
  if (world.cloud === null) return undefined;
  const { instances } = world.cloud;
  const shown = indexOf(instances);
  if (record.instanceId !== null) return shown.byId.get(record.instanceId);
  shown.byTags ??= firstOf(instances, (i) => `${i.tags[TAG.slot]} ${i.tags[TAG.epoch]}`);
  return shown.byTags.get(`${record.slot} ${record.epoch}`);
}

function indexOf(instances: readonly CloudInstance[]): CloudIndex {
  let shown = known.get(instances);
  if (shown === undefined) {
    shown = { byId: firstOf(instances, (i) => i.id), byTags: null };
    known.set(instances, shown);
  }
  return shown;
}

function firstOf(instances: readonly CloudInstance[], keyOf: (i: CloudInstance) => string): Map<string, CloudInstance> {
  const first = new Map<string, CloudInstance>();
  for (const instance of instances) {
    const key = keyOf(instance);
    if (!first.has(key)) first.set(key, instance);
  }
  return first;
}
