/** Keys of the objects a run writes to S3. Made from our own ids only, never from crawled text. */
import type { EpochId } from './epoch-id.ts';

/** `runs/<run>/` */
export const runPrefix = (run: string): string => `runs/${run}/`;

/** `runs/<run>/<slot>/<epoch>/` */
export const shardPrefix = (run: string, slot: number, epoch: number): string => `${runPrefix(run)}${slot}/${epoch}/`;

/** `runs/<run>/<slot>/<epoch>/<seq>-<sha256>.ndjson.gz` */
export const partKey = (run: string, { slot, epoch, seq, sha256 }: PartName): string =>
  `${shardPrefix(run, slot, epoch)}${seq}-${sha256}.ndjson.gz`;

/** `runs/<run>/<slot>/<epoch>/manifest.json` */
export const manifestKey = (run: string, slot: number, epoch: number): string =>
  `${shardPrefix(run, slot, epoch)}manifest.json`;

/** `runs/<run>/<slot>/<epoch>/manifest-<sha256>.json`: the main server's, where a foreign object has the other name. */
export const manifestAsideKey = (run: string, { slot, epoch }: EpochId, sha256: string): string =>
  `${shardPrefix(run, slot, epoch)}manifest-${sha256}.json`;

/** `runs/<run>/keys/<slot>-<epoch>.json`; never below the prefix of an instance. */
export const keyDocumentKey = (run: string, { slot, epoch }: EpochId): string =>
  `${runPrefix(run)}keys/${slot}-${epoch}.json`;

/** `runs/<run>/run.json` */
export const runDescriptionKey = (run: string): string => `${runPrefix(run)}run.json`;

/** `runs/<run>/products-<k>.jsonl.gz` */
export const productListKey = (run: string, k: number): string => `${runPrefix(run)}products-${k}.jsonl.gz`;

/** `runs/<run>/crawl-settings-<sha256>.json.gz` */
export const crawlSettingsKey = (run: string, sha256: string): string =>
  `${runPrefix(run)}crawl-settings-${sha256}.json.gz`;

/** `bundles/<sha256>.tar.gz` */
export const bundleKey = (sha256: string): string => `bundles/${sha256}.tar.gz`;

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

/** The reverse of manifestKey; null for any other key. */
export function parseManifestKey(run: string, key: string): EpochId | null {
  const prefix = runPrefix(run);
  const match = key.startsWith(prefix) ? /^(\d+)\/(\d+)\/manifest\.json$/.exec(key.slice(prefix.length)) : null;
  return match ? { slot: Number(match[1]), epoch: Number(match[2]) } : null;
}
