/**
 * The last item for which this holds, by binary search: the list is sorted, so that it holds for all items before that
 * one and for none after it. Undefined where it holds for none.
 */
export function lastWhere<T>(list: readonly T[], holds: (item: T) => boolean): T | undefined {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = list[middle];
    if (item !== undefined && holds(item)) low = middle + 1;
    else high = middle;
  }
  return list[low - 1];
}
