/** What all instances of a run crawl by, as one object in the bucket (shared/wire/crawl-settings.ts). */
import { AppError } from '../../../../shared/domain/errors.ts';
import { crawlSettingsKey } from '../../../../shared/domain/keys.ts';
import type { ObjectStore } from '../../../../shared/ports/object-store.ts';
import {
  MAX_CRAWL_SETTINGS_BYTES,
  packCrawlSettings,
  unpackCrawlSettings,
} from '../../../../shared/wire/crawl-settings.ts';
import type { RunSettings } from '../../model/run-settings.ts';

type Settings = Pick<RunSettings, 'site' | 'mapping' | 'results' | 'discover' | 'crawlSettings'>;

/** The object of a run with these settings. Throws `config-invalid` when it would be too long. */
export function packSettingsOf(
  { site, mapping, results, discover }: Omit<Settings, 'crawlSettings'>,
  deny: readonly string[] = [],
): { bytes: Buffer; sha256: string } {
  return packCrawlSettings({
    version: 2,
    // A row of an earlier version says it by its results alone.
    site: { ...site, ...(results.conditional === undefined ? {} : { conditional: true }) },
    mapping,
    ...(discover === undefined ? {} : { links: 'report' }),
    ...(deny.length === 0 ? {} : { deny }),
  });
}

/**
 * Puts the object into the bucket unless it is there, and names it. It is made from the run's row, so a run that an
 * earlier version has begun gets one too; only a deny list is not in the row.
 * @param deny of a new run; left out: the run's own, read from the object that its row names
 */
export async function putCrawlSettings(
  objects: Pick<ObjectStore, 'exists' | 'get' | 'putIfAbsent'>,
  { id, settings }: { id: string; settings: Settings },
  deny?: readonly string[],
): Promise<{ key: string; sha256: string }> {
  const { bytes, sha256 } = packSettingsOf(settings, deny ?? (await readDeny(objects, id, settings.crawlSettings)));
  const key = crawlSettingsKey(id, sha256);
  if (!(await objects.exists(key))) await objects.putIfAbsent(key, bytes, 'application/gzip');
  return { key, sha256 };
}

async function readDeny(
  objects: Pick<ObjectStore, 'get'>,
  runId: string,
  sha256: string | undefined,
): Promise<readonly string[]> {
  if (sha256 === undefined) return [];
  const key = crawlSettingsKey(runId, sha256);
  const bytes = await objects.get(key, MAX_CRAWL_SETTINGS_BYTES);
  if (bytes === null)
    throw new AppError('object-missing', `the bucket has no object ${key}, which has the deny list of the run`);
  const settings = unpackCrawlSettings(bytes, sha256);
  if (settings === null) throw new AppError('object-corrupt', `the object ${key} does not have the hash in its name`);
  return settings.deny ?? [];
}
