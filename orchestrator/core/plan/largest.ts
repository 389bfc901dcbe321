/** The largest number below `limit` that fits, if smaller ones always do; 0 when none does. */
export function largest(limit: number, fits: (n: number) => boolean): number {
  let [low, high] = [0, limit];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}
