/** A list with a first entry. */
export type NonEmpty<T> = readonly [T, ...T[]];

export const isNonEmpty = <T>(all: readonly T[]): all is NonEmpty<T> => all.length > 0;

/** `map` that keeps what is known of the length. */
export function mapAll<T, R>([first, ...others]: NonEmpty<T>, map: (item: T) => R): NonEmpty<R> {
  return [map(first), ...others.map(map)];
}
