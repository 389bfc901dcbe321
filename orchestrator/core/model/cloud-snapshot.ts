/** What EC2 showed under a run's tag at one moment. */
import { type CloudInstance, TAG } from '../cloud/compute.ts';
import type { InstanceRecord } from './stores.ts';

export class CloudSnapshot {
  readonly instances: readonly CloudInstance[];
  /** When EC2 was polled. */
  readonly seenAtMs: number;
  readonly #byId: ReadonlyMap<string, CloudInstance>;
  #byTags?: ReadonlyMap<string, CloudInstance>;

  constructor(instances: readonly CloudInstance[], seenAtMs: number) {
    this.instances = instances;
    this.seenAtMs = seenAtMs;
    this.#byId = firstOf(instances, (i) => i.id);
  }

  /**
   * The instance by the id that EC2 gave; before that by the tags of the claim. Undefined when EC2 does not show it.
   */
  find({ instanceId, slot, epoch }: InstanceRecord): CloudInstance | undefined {
    if (instanceId !== null) return this.#byId.get(instanceId);
    this.#byTags ??= firstOf(this.instances, (i) => `${i.tags[TAG.slot]} ${i.tags[TAG.epoch]}`);
    return this.#byTags.get(`${slot} ${epoch}`);
  }
}

/** The instances by key; of several with the same key the first one counts. */
function firstOf(
  instances: readonly CloudInstance[],
  keyOf: (i: CloudInstance) => string,
): ReadonlyMap<string, CloudInstance> {
  const first = new Map<string, CloudInstance>();
  for (const instance of instances) {
    const key = keyOf(instance);
    if (!first.has(key)) first.set(key, instance);
  }
  return first;
}
