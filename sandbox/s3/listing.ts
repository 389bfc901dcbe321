/** Which keys and common prefixes a page of a listing shows. Pure: the same for ListObjects, version 1 and 2. */
import { compareKeys } from './key-path.ts';

export interface ListingRequest {
  prefix: string;
  delimiter: string;
  /** Show only keys after this one; empty for all. */
  after: string;
  maxKeys: number;
}

export interface Listing {
  keys: string[];
  commonPrefixes: string[];
  /** Where the next page starts; null on the last page. */
  next: string | null;
}

/** @param keys of the whole bucket, in S3's order */
export function listKeys(keys: readonly string[], request: ListingRequest): Listing {
  const { prefix, delimiter, after, maxKeys } = request;
  const listing: Listing = { keys: [], commonPrefixes: [], next: null };
  if (maxKeys === 0) return listing;
  let lastShown = '';
  for (let i = firstIndex(keys, compareKeys(prefix, after) > 0 ? prefix : after); i < keys.length; i++) {
    const key = keys[i]!;
    if (!key.startsWith(prefix)) {
      if (compareKeys(key, prefix) > 0) break;
      continue;
    }
    const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    const common = cut < 0 ? null : key.slice(0, cut + delimiter.length);
    // A group shown on this or the previous page is not shown again, although its later keys are past the marker.
    if (common !== null && (common === after || common === listing.commonPrefixes.at(-1))) continue;
    if (after !== '' && compareKeys(key, after) <= 0) continue;
    if (listing.keys.length + listing.commonPrefixes.length === maxKeys) {
      listing.next = lastShown;
      break;
    }
    if (common === null) listing.keys.push(key);
    else listing.commonPrefixes.push(common);
    lastShown = common ?? key;
  }
  return listing;
}

/** Index of the first key that is not before `from`. */
function firstIndex(keys: readonly string[], from: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareKeys(keys[middle]!, from) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
