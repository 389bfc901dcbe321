/**
 * What all instances of a run crawl by: site, mapping and what is followed. One object in the bucket, read as the
 * bundle is, by a presigned URL. Its hash is in the user data and is checked before anything is parsed. It holds no
 * secret of ours: everyone with read access to `runs/` in the bucket can read it.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { AppError } from '../domain/errors.ts';
import { mappingSchema } from './mapping-schema.ts';
import { sha256Hex } from './signature.ts';
import { siteSettingsSchema } from './site-settings.ts';

/** What is not followed, as `DenyList` takes it. */
const denySchema = z.array(z.string()).readonly().exactOptional();

const crawlSettingsSchema = z.strictObject({
  version: z.literal(2),
  site: siteSettingsSchema,
  mapping: mappingSchema,
  /** Links are reported and not followed, in a discovery. */
  links: z.literal('report').exactOptional(),
  deny: denySchema,
});
export type CrawlSettings = z.infer<typeof crawlSettingsSchema>;

/** The object of earlier versions, which had the rest in their user data. */
const denyListSchema = z.strictObject({ version: z.literal(1), deny: denySchema });

/** Maximum size of the object. */
export const MAX_CRAWL_SETTINGS_BYTES = 5_000_000;
/** Maximum size of its JSON, which an instance of half a gigabyte holds: 20,000 of the longest lines. */
const MAX_JSON_BYTES = 20_000_000;
const MAX_FAULTS = 5;

/**
 * The object, and its SHA-256 in hex. The same settings give the same bytes. Throws `config-invalid` when no instance
 * would take them, or they are too long.
 */
export function packCrawlSettings(settings: CrawlSettings): { bytes: Buffer; sha256: string } {
  const { error, data } = crawlSettingsSchema.safeParse(settings);
  if (error) {
    const faults = error.issues.slice(0, MAX_FAULTS).map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new AppError('config-invalid', `no instance would take these settings: ${faults.join('; ')}`);
  }
  const json = Buffer.from(JSON.stringify(data));
  const bytes = gzipSync(json);
  if (json.length > MAX_JSON_BYTES || bytes.length > MAX_CRAWL_SETTINGS_BYTES)
    throw new AppError(
      'config-invalid',
      `the settings of the instances are too long: ${json.length} bytes, ${bytes.length} of them packed`,
      {
        hint: `Instances accept ${MAX_JSON_BYTES} bytes, ${MAX_CRAWL_SETTINGS_BYTES} packed: shorten the mapping, or replace lines of site.follow.deny by their common prefix.`,
      },
    );
  return { bytes, sha256: sha256Hex(bytes) };
}

/** Reads the object. Null when the bytes are not those of the hash; throws when they are, and are no settings. */
export function unpackCrawlSettings(
  bytes: Uint8Array,
  sha256: string,
): CrawlSettings | z.infer<typeof denyListSchema> | null {
  if (sha256Hex(bytes) !== sha256) return null;
  const json = gunzipSync(bytes, { maxOutputLength: MAX_JSON_BYTES }).toString('utf8');
  return z.discriminatedUnion('version', [crawlSettingsSchema, denyListSchema]).parse(JSON.parse(json));
}
