/** Keys of the objects a run writes to S3. Made from our own ids only, never from crawled text. */
import type { EpochId } from './epoch-id.ts';

/** `runs/<run>/` */
export const runPrefix = (run: string): string => `runs/${run}/`;

/** `runs/<run>/<slot>/<epoch>/` */
export const shardPrefix = (run: string, slot: number, epoch: number): string => `${runPrefix(run)}${slot}/${epoch}/`;

/**
 * `aws:userid` of an instance's role, as a folder in the shard's prefix: `<id of the role>:<id of the instance>`. The
 * policy of the role binds the instance to it. It proves nothing to a reader: a signature does.
 */
export const ROLE_SESSION = /^[A-Za-z0-9][A-Za-z0-9+=,.@_:-]{0,127}$/;

const folderOf = (session: string | null | undefined): string => (session ? `${session}/` : '');

/** `runs/<run>/<slot>/<epoch>/<role session>/<seq>-<sha256>.ndjson.gz`, or without the role session. */
export const partKey = (run: string, part: PartName & { session?: string | null }): string =>
  `${shardPrefix(run, part.slot, part.epoch)}${folderOf(part.session)}${part.seq}-${part.sha256}.ndjson.gz`;

/** `runs/<run>/<slot>/<epoch>/<role session>/<seq>-<sha256>.requests.gz`, or without the role session. */
export const requestLogKey = (run: string, log: PartName & { session?: string | null }): string =>
  `${shardPrefix(run, log.slot, log.epoch)}${folderOf(log.session)}${log.seq}-${log.sha256}.requests.gz`;

/** `runs/<run>/<slot>/<epoch>/<role session>/manifest.json`; without the role session also the main server's. */
export const manifestKey = (run: string, slot: number, epoch: number, session?: string | null): string =>
  `${shardPrefix(run, slot, epoch)}${folderOf(session)}manifest.json`;

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

/** The reverse of partKey, with or without a role session; null for any other key. */
export const parsePartKey = (run: string, key: string): PartName | null => parseNumberedKey(run, key, 'ndjson.gz');

/** The reverse of requestLogKey, with or without a role session; null for any other key. */
export const parseRequestLogKey = (run: string, key: string): PartName | null =>
  parseNumberedKey(run, key, 'requests.gz');

function parseNumberedKey(run: string, key: string, ending: string): PartName | null {
  const found = parseShardKey(run, key);
  const [, seq, sha256, end] = (found && /^(\d+)-([0-9a-f]{64})\.(.+)$/.exec(found.name)) ?? [];
  if (!found || sha256 === undefined || end !== ending) return null;
  return { slot: found.slot, epoch: found.epoch, seq: Number(seq), sha256 };
}

/** The reverse of manifestKey, with or without a role session; null for any other key. */
export function parseManifestKey(run: string, key: string): EpochId | null {
  const found = parseShardKey(run, key);
  return found?.name === 'manifest.json' ? { slot: found.slot, epoch: found.epoch } : null;
}

function parseShardKey(run: string, key: string): (EpochId & { name: string }) | null {
  const prefix = runPrefix(run);
  if (!key.startsWith(prefix)) return null;
  const [, slot, epoch, session, name] = /^(\d+)\/(\d+)\/(?:([^/]+)\/)?([^/]+)$/.exec(key.slice(prefix.length)) ?? [];
  if (name === undefined || (session !== undefined && !ROLE_SESSION.test(session))) return null;
  return { slot: Number(slot), epoch: Number(epoch), name };
}
