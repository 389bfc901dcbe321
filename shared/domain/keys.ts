/** Keys of the objects a run writes to S3. Made from our own ids only, never from crawled text. */

/** `runs/<run>/` */
export const runPrefix = (run: string): string => `runs/${run}/`;

/** `runs/<run>/<slot>/<epoch>/` */
export const shardPrefix = (run: string, slot: number, epoch: number): string => `${runPrefix(run)}${slot}/${epoch}/`;

/** `runs/<run>/<slot>/<epoch>/<seq>-<sha256>.ndjson.gz` */
export const partKey = (run: string, slot: number, epoch: number, seq: number, sha256: string): string =>
  `${shardPrefix(run, slot, epoch)}${seq}-${sha256}.ndjson.gz`;

/** `runs/<run>/<slot>/<epoch>/manifest.json` */
export const manifestKey = (run: string, slot: number, epoch: number): string =>
  `${shardPrefix(run, slot, epoch)}manifest.json`;

/** `bundles/<sha256>.mjs` */
export const bundleKey = (sha256: string): string => `bundles/${sha256}.mjs`;

export interface PartName {
  slot: number;
  epoch: number;
  seq: number;
  sha256: string;
}

/** The reverse of partKey; null for any other key. */
export function parsePartKey(run: string, key: string): PartName | null {
  const prefix = runPrefix(run);
  if (!key.startsWith(prefix)) return null;
  const match = /^(\d+)\/(\d+)\/(\d+)-([0-9a-f]{64})\.ndjson\.gz$/.exec(key.slice(prefix.length));
  return match ? { slot: Number(match[1]), epoch: Number(match[2]), seq: Number(match[3]), sha256: match[4]! } : null;
}
