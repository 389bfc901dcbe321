/**
 * Everything an instance is configured with, sent only in its user data. It contains no long-lived secret: the token
 * only MACs one hello and expires at the boot deadline.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { mappingSchema } from './mapping-schema.ts';

/** An object in the bucket: its presigned URL, and its SHA-256 in hex. */
const objectSchema = z.strictObject({ url: z.url(), sha256: z.string().regex(/^[0-9a-f]{64}$/) });

const settingsSchema = z.strictObject({
  version: z.literal(1),
  run: z.string().min(1),
  slot: z.int().nonnegative(),
  epoch: z.int().positive(),
  /** MAC key of the hello, 64 hex digits. */
  token: z.string().regex(/^[0-9a-f]{64}$/),
  /** Base64 SPKI of the key that signs offers and orders. */
  runPublicKey: z.string(),
  /** Base URL of the main server's callback listener. */
  callbackUrl: z.url(),
  /** Port for the load balancer, on the instance's own address. */
  apiPort: z.int().min(1).max(65_535),
  /** Port of the routes that only the machine itself may use. */
  localPort: z.int().min(1).max(65_535),
  /** The program to run: fetched from `url`, checked against `sha256`. */
  bundle: objectSchema,
  /** An object with what is too long for user data (crawl-settings.ts). */
  crawlSettings: objectSchema.exactOptional(),
  s3: z.strictObject({
    region: z.string(),
    bucket: z.string(),
    endpoint: z.url().nullable(),
    sse: z.string().exactOptional(),
    /** Its objects lie in a folder named like the session of its role; omitted in runs of earlier versions. */
    roleSession: z.literal(true).exactOptional(),
  }),
  startedAt: z.iso.datetime(),
  deadline: z.iso.datetime(),
  /** The machine powers itself off at this time, whatever happens. */
  powerOffAt: z.iso.datetime(),
  heartbeatMs: z.int().positive(),
  partMs: z.int().positive(),
  site: z.strictObject({
    productUrl: z.union([
      z.string(),
      z.array(z.strictObject({ url: z.string(), weight: z.number().positive() })).readonly(),
    ]),
    intervalMs: z.number().positive(),
    timeoutMs: z.int().positive(),
    maxPageBytes: z.int().positive(),
    /** Report the validators of each page, for the conditional requests of the next run. */
    conditional: z.literal(true).exactOptional(),
    userAgent: z.string().min(1),
    allowPrivate: z.boolean(),
    /** Omitted: cookies are kept. */
    keepCookies: z.literal(false).exactOptional(),
    render: z.enum(['http', 'browser', 'auto']),
    robots: z.enum(['respect', 'ignore']),
    /** In a discovery, links are reported and not followed. */
    links: z.literal('report').exactOptional(),
    /** In a probe: maximum requests to the site. */
    maxRequests: z.int().positive().exactOptional(),
    ban: z.strictObject({
      statuses: z.array(z.int()),
      redirects: z.array(z.string().min(1)),
      patterns: z.array(z.string().min(1)),
      coolDownMs: z.number().positive(),
    }),
    canaries: z.array(
      z.strictObject({
        id: z.string().min(1),
        fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
      }),
    ),
  }),
  /** The machine runs the SSM agent, for `orchestrator exec`. */
  commands: z.literal(true).exactOptional(),
  mapping: mappingSchema,
});
export type InstanceSettings = z.infer<typeof settingsSchema>;

const MARK = '# crawlfleet-settings: ';

/** The settings as one comment line of the user-data script, gzipped so that long mappings fit into 16 KB. */
export function encodeSettingsLine(settings: InstanceSettings): string {
  return MARK + gzipSync(JSON.stringify(settings)).toString('base64');
}

/** The settings in a user-data script; throws when there are none or they are not valid. */
export function parseUserData(userData: string): InstanceSettings {
  const line = userData.split('\n').find((l) => l.startsWith(MARK));
  if (!line) throw new Error('the user data has no crawlfleet settings');
  return settingsSchema.parse(
    JSON.parse(gunzipSync(Buffer.from(line.slice(MARK.length).trim(), 'base64')).toString('utf8')),
  );
}
