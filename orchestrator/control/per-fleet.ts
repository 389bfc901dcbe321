/** Sums over all instances that many slots ask for in one round of `decide`: worked out once for each state of the fleet. */
import type { InstanceRecord } from './model/stores.ts';

/** The same function, remembering its result for as long as the very list of instances is in use. */
export function perFleet<T>(
  compute: (instances: readonly InstanceRecord[]) => T,
): (instances: readonly InstanceRecord[]) => T {
  const known = new WeakMap<readonly InstanceRecord[], T>();
  return (instances) => {
    let result = known.get(instances);
    if (result === undefined) {
      result = compute(instances);
      known.set(instances, result);
    }
    return result;
  };
}
