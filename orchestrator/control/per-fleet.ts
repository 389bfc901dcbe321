/**
 * Caches sums over all instances that many slots need in one round of `decide`: computed once for each state of the
 * fleet.
 */
import type { InstanceRecord } from './model/stores.ts';

/** The same function, with its result cached for as long as the same list of instances is in use. */
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
