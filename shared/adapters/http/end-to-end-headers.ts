/** The headers that a proxy passes on. */

const HOP_BY_HOP = new Set(
  (
    'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding ' +
    'upgrade'
  ).split(' '),
);

/** @param name in lower case */
export const isEndToEnd = (name: string): boolean => !HOP_BY_HOP.has(name);

/** Name and value alternately, in order, repeated ones included. */
export function endToEndHeaders(raw: readonly string[]): string[] {
  return raw.filter((_, index) => isEndToEnd(raw[index - (index % 2)]!.toLowerCase()));
}
