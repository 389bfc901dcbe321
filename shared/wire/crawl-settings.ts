/**
 * What instances are configured with beyond their user data, which is limited to 16 KB: one object in the bucket, read
 * like the bundle by a presigned URL. Its hash is in the user data and is checked before anything is parsed.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { AppError } from '../domain/errors.ts';
import { sha256Hex } from './signature.ts';

const crawlSettingsSchema = z.strictObject({
  version: z.literal(1),
  /** In a discovery: prefixes of paths that no redirect may lead to, as `shortestPrefixes` gives them. */
  deny: z.array(z.string()).readonly().exactOptional(),
});
export type CrawlSettings = z.infer<typeof crawlSettingsSchema>;

/** Maximum size of the object. */
export const MAX_CRAWL_SETTINGS_BYTES = 5_000_000;
/** Maximum size of its JSON, which an instance of half a gigabyte holds: 20,000 of the longest lines. */
const MAX_JSON_BYTES = 20_000_000;

/** The object, and its SHA-256 in hex. The same settings give the same bytes. Throws `config-invalid` when they are too long. */
export function packCrawlSettings(settings: CrawlSettings): { bytes: Buffer; sha256: string } {
  const json = Buffer.from(JSON.stringify(settings));
  const bytes = gzipSync(json);
  if (json.length > MAX_JSON_BYTES || bytes.length > MAX_CRAWL_SETTINGS_BYTES)
    throw new AppError(
      'config-invalid',
      `discover.deny is too long: ${json.length} bytes, ${bytes.length} of them packed`,
      {
        hint: `Instances accept ${MAX_JSON_BYTES} bytes, ${MAX_CRAWL_SETTINGS_BYTES} packed: replace lines by their common prefix.`,
      },
    );
  return { bytes, sha256: sha256Hex(bytes) };
}

/** Null when the bytes are not those of the hash. Throws when they are, and are no settings. */
export function unpackCrawlSettings(bytes: Uint8Array, sha256: string): CrawlSettings | null {
  if (sha256Hex(bytes) !== sha256) return null;
  const json = gunzipSync(bytes, { maxOutputLength: MAX_JSON_BYTES }).toString('utf8');
  return crawlSettingsSchema.parse(JSON.parse(json));
}
