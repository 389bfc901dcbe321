/**
 * What an instance is configured with. Its user data has what differs between instances and what the boot needs; the
 * rest is in one object for all (crawl-settings.ts). The user data contains no long-lived secret: the token only MACs
 * one hello and expires at the boot deadline.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import type { CrawlSettings } from './crawl-settings.ts';
import { mappingSchema } from './mapping-schema.ts';
import { siteSettingsSchema } from './site-settings.ts';

/** An object in the bucket: its presigned URL, and its SHA-256 in hex. */
const objectSchema = z.strictObject({ url: z.url(), sha256: z.string().regex(/^[0-9a-f]{64}$/) });

/** The form of the user data: a program of an earlier version cannot read this one. */
export const USER_DATA_VERSION = 2;

const userDataSchema = z.strictObject({
  version: z.literal(USER_DATA_VERSION),
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
  /** What it crawls by (crawl-settings.ts). */
  crawlSettings: objectSchema,
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
  /**
   * How long it may ask hosts after it sent the last heartbeat that was accepted: then they may have another owner.
   * Omitted in a run of one site, which is never another instance's.
   */
  leaseMs: z.int().positive().exactOptional(),
  /** The machine runs the SSM agent, for `orchestrator exec`. */
  commands: z.literal(true).exactOptional(),
});
export type UserData = z.infer<typeof userDataSchema>;

/**
 * User data of earlier versions: all settings but the deny list of a discovery. A main server of this version renders
 * none, but `orchestrator exec --update` puts its program onto machines that have it.
 */
const wholeSchema = userDataSchema.extend({
  version: z.literal(1),
  crawlSettings: objectSchema.exactOptional(),
  site: siteSettingsSchema.omit({ maxRatePerSecond: true, onBan: true }).extend({
    links: z.literal('report').exactOptional(),
  }),
  mapping: mappingSchema,
});
/** User data of this version, or of an earlier one. */
export type AnyUserData = UserData | z.infer<typeof wholeSchema>;

/** Everything that an instance is configured with. */
export type InstanceSettings = Omit<UserData, 'version' | 'crawlSettings'> & Omit<CrawlSettings, 'version'>;

const MARK = '# crawlfleet-settings: ';

/** The settings as one comment line of the user-data script, gzipped. */
export function encodeSettingsLine(settings: AnyUserData): string {
  return MARK + gzipSync(JSON.stringify(settings)).toString('base64');
}

/** The settings in a user-data script; throws when there are none or they are not valid. */
export function parseUserData(userData: string): AnyUserData {
  const line = userData.split('\n').find((l) => l.startsWith(MARK));
  if (!line) throw new Error('the user data has no crawlfleet settings');
  return z
    .discriminatedUnion('version', [userDataSchema, wholeSchema])
    .parse(JSON.parse(gunzipSync(Buffer.from(line.slice(MARK.length).trim(), 'base64')).toString('utf8')));
}
