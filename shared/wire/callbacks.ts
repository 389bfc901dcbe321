/** What an instance sends to the main server, and the orders in the replies. */
import { z } from 'zod';
import { KIND_TEXT, type MissCount } from '../domain/failure-kind.ts';
import { FAILURE_REASONS } from '../domain/outcome.ts';
import type { RobotsPolicy } from '../domain/robots-matcher.ts';
import { EVIDENCE_BODY_BYTES } from '../domain/verdict.ts';
import { chunkIdSchema, chunkProductsSchema } from './instance-api.ts';

export const HELLO_PATH = '/v1/instances/hello';
export const HEARTBEAT_PATH = '/v1/instances/heartbeat';
export const COMPLETION_PATH = '/v1/instances/completion';

/** Maximum callback body that the main server reads. */
export const MAX_CALLBACK_BYTES = 1_000_000;

const count = z.int().nonnegative();

/**
 * First message of an instance, MACed with the token of its user data. Repeating it is harmless; another key is
 * refused.
 */
export const helloSchema = z.strictObject({
  instanceId: z.string().min(1).max(64),
  /** The address it serves and crawls from, by its metadata service. */
  address: z.string().min(1).max(64),
  publicKey: z.string().min(1).max(200),
  bundleSha256: z.string(),
  /** The instance's clock, so that skew can be reported; the server's time decides. */
  clock: z.iso.datetime(),
  /** The X25519 key of this process, which secrets are encrypted to (secrets.ts). Omitted where the site needs none. */
  secretsKey: z.string().max(200).exactOptional(),
  /** Its signature by the instance's own key. */
  secretsKeySignature: z.string().max(200).exactOptional(),
});
export type Hello = z.infer<typeof helloSchema>;

/** A part that is in the bucket. */
export const partRefSchema = z.strictObject({
  seq: count,
  key: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: count,
  products: count,
});
export type PartRef = z.infer<typeof partRefSchema>;

/** Kinds of failures that a heartbeat tells apart; of further ones it has only the reason. */
export const MAX_MISS_KINDS = 12;
/** A longer detail is cut, a longer URL left out. */
export const MAX_MISS_CHARS = KIND_TEXT.most.whole;

const missCountSchema: z.ZodType<MissCount> = z.strictObject({
  reason: z.enum([...FAILURE_REASONS, 'gone']),
  detail: z.string().max(MAX_MISS_CHARS).nullable(),
  products: count,
  waiting: count,
  url: z.string().max(MAX_MISS_CHARS).nullable(),
});

export const progressSchema = z.strictObject({
  /** Products granted to it. */
  assigned: count,
  /** Granted products without an outcome yet. */
  pending: count,
  stored: count,
  gone: count,
  failed: count,
  /** Requests sent to the target. */
  requests: count,
  /** Smallest time between the starts of two requests to the same domain; null before the second one. */
  minGapMs: z.number().nullable(),
  /** Median time of a page so far; null before the first one. */
  pageMs: z.number().nullable(),
  /** Longest upload of a part so far, counting only the successful attempt; null before the first one. */
  uploadMs: z.number().nonnegative().nullable().default(null),
  /** S3 has refused to store an object, and the repetition, for lack of a right; omitted: it has not. */
  storeRefused: z.literal(true).exactOptional(),
  /** Pages fetched with a browser. */
  rendered: count,
  /** Requests for canary pages, configured or not, fetched again when in doubt; part of `requests`. */
  canaries: count,
  /** Milliseconds since the last right page, of the domain where that is longest ago; null before its first one. */
  okAgoMs: z.number().nonnegative().nullable(),
  /** Finished requests of this process, whatever their result; starts at 0 with each process. */
  tried: count.default(0),
  /** How many of those got a server error (5xx), a timeout or no connection. */
  unavailable: count.default(0),
  /** Pages of this process that were judged right, gone or unchanged, including canary pages and held ones. */
  served: count.default(0),
  /** How long a domain still wants no request from this address (Retry-After); 0 when requests are allowed. */
  restMs: z.number().nonnegative().default(0),
  /**
   * Products stored since the last ban, of the domain where these are fewest, while it keeps a longer interval for that
   * ban. Omitted: it keeps the usual one everywhere.
   */
  sinceBan: count.exactOptional(),
  /** How many of `tried` got which status, or why there was no reply (`timeout`, `network` …). */
  replies: z.record(z.string().max(20), count).default({}),
  /** Its products without a row, by kind; those that wait have no outcome yet. Omitted where there are none. */
  misses: z
    .array(missCountSchema)
    .max(MAX_MISS_KINDS + FAILURE_REASONS.length + 1)
    .exactOptional(),
});
export type Progress = z.infer<typeof progressSchema>;

/** The progress of an instance that has not begun. */
export const NO_PROGRESS: Readonly<Progress> = {
  assigned: 0,
  pending: 0,
  stored: 0,
  gone: 0,
  failed: 0,
  requests: 0,
  minGapMs: null,
  pageMs: null,
  uploadMs: null,
  rendered: 0,
  canaries: 0,
  okAgoMs: null,
  tried: 0,
  unavailable: 0,
  served: 0,
  restMs: 0,
  replies: {},
};

/** Hosts in one heartbeat. */
export const MAX_HOSTS = 1_000;

/**
 * What a host has done: refused a page, and shown no right one since; then refused again, so that it rests or has
 * rested; and refused after its rest, so that it is asked nothing more.
 */
export const REFUSALS = { once: 1, rested: 2, givenUp: 3 } as const;

/** What an instance has learned of one of many hosts, which its next owner must know. Times are milliseconds. */
const hostNewsSchema = z.strictObject({
  /** As hostGroupOf gives it. */
  host: z.string().max(255),
  /** The largest Crawl-delay of its origins. */
  delayMs: z.number().nonnegative().exactOptional(),
  /** How long it wants no request from now on: Retry-After, or the rest after a refusal. */
  waitMs: z.number().nonnegative().exactOptional(),
  /** How often it has refused this run, as REFUSALS says. Omitted: never, or a page was right since. */
  refusals: count.exactOptional(),
});
export type HostNews = z.infer<typeof hostNewsSchema>;

/** What holds for one of many hosts, from an earlier owner or the operator. */
const hostOrderSchema = hostNewsSchema.extend({
  /** The gap that an operator asks for (`orchestrator hosts pace`). Omitted: none, or none any more. */
  paceMs: z.number().nonnegative().exactOptional(),
  /** An operator wants no request to it (`orchestrator hosts deny`). Omitted: no, or no longer. */
  denied: z.literal(true).exactOptional(),
});
export type HostOrder = z.infer<typeof hostOrderSchema>;

const SERVING_PHASES = ['ready', 'crawling', 'banned', 'uploading', 'done'] as const;

export const evidenceSchema = z.strictObject({
  rule: z.string().max(100),
  url: z.string().max(10_000),
  status: z.int().nullable(),
  headers: z.record(z.string(), z.string()),
  body: z.string().max(EVIDENCE_BODY_BYTES),
  cookie: z.string().max(100).exactOptional(),
  request: z
    .strictObject({ identity: z.string().max(10_000), body: z.string().max(EVIDENCE_BODY_BYTES) })
    .exactOptional(),
});

/**
 * Why an address has stopped crawling on its own. `suspect`: a canary page was bad too, and nothing points only to a
 * ban; only the main server can tell a ban from a changed site. `banned`: the site refuses the address.
 */
const incidentSchema = z.strictObject({
  verdict: z.enum(['suspect', 'banned']),
  /** How long ago it began. */
  sinceMs: z.number().nonnegative(),
  /** How long it will still send no request to the site; null for `suspect`. */
  leftMs: z.number().nonnegative().nullable(),
  evidence: evidenceSchema,
});
export type Incident = z.infer<typeof incidentSchema>;

export const heartbeatSchema = z.strictObject({
  phase: z.enum(SERVING_PHASES),
  clock: z.iso.datetime(),
  /** Chunks without a grant yet: the instance requests them. */
  offered: z.array(z.string()).max(10_000),
  /** Chunks it has returned untouched, until they are in the reply's `transferredAck`; it will never crawl them. */
  transferred: z.array(z.string()).max(10_000).default([]),
  progress: progressSchema,
  /** Uploaded parts the server has not acknowledged yet, in order of seq. */
  parts: z.array(partRefSchema).max(500),
  /** A problem for the user to see: `disk full`, `S3 refuses` …; null when there is none. */
  problem: z.string().max(500).nullable(),
  incident: incidentSchema.nullable(),
  /** Version of the robots.txt it follows; null before the first. */
  robots: z.string().nullable(),
  /** Version of the secrets that it sends to the site; null before the first. Omitted where the site needs none. */
  secrets: z.string().max(100).nullable().exactOptional(),
  /** Of many hosts: what it has learned of some since the last heartbeat that was answered. Omitted: nothing. */
  hosts: z.array(hostNewsSchema).max(MAX_HOSTS).exactOptional(),
  /** Of many hosts: `wishes` of the last reply that had it. A new process begins without. */
  wishes: z.string().max(100).exactOptional(),
  /** Keys of a reply that it knows, of those that an instance of an earlier version refuses. */
  understands: z.array(z.string().max(40)).max(20).exactOptional(),
});
export type Heartbeat = z.infer<typeof heartbeatSchema>;

const onePolicySchema = z.strictObject({
  version: z.string(),
  access: z.enum(['all', 'none', 'rules']),
  rules: z.array(z.strictObject({ allow: z.boolean(), pattern: z.string() })),
  crawlDelayMs: z.number().nonnegative().nullable(),
  source: z.string(),
});
export const robotsPolicySchema: z.ZodType<RobotsPolicy> = onePolicySchema.extend({
  further: z.array(onePolicySchema).exactOptional(),
  domains: z.array(onePolicySchema).exactOptional(),
});

/** The reply to a heartbeat: orders. Signed with the run's key over the counter of the heartbeat it answers. */
export const ordersSchema = z.strictObject({
  /** Chunks of `offered` that the instance owns from now on. */
  grants: z.array(z.string()),
  /** Chunks of `offered` that belong to another instance, or to none any more: forget them. */
  drops: z.array(z.string()),
  /** Chunks of its own that other instances could crawl sooner: it returns those that it has not started. */
  transfer: z.array(z.string()).max(10_000).default([]),
  /** Chunks of the heartbeat's `transferred` that the main server has recorded; they need not be sent again. */
  transferredAck: z.array(z.string()).max(10_000).default([]),
  /**
   * Maximum products it may hold, whatever share an offer names, because other instances finish sooner. null: the
   * offer's share.
   */
  maxProducts: count.nullable().default(null),
  /** No further chunk will be granted: crawl the rest, close the epoch. */
  sealed: z.boolean(),
  /** Stop crawling now, upload the results and close the epoch. */
  drain: z.boolean(),
  /** Another instance has this slot: write nothing more, power off. */
  fenced: z.boolean(),
  /** The parts in this heartbeat with seq <= this are in the ledger; -1 for none. */
  partsAck: z.int().min(-1),
  intervalMs: z.number().positive(),
  deadline: z.iso.datetime(),
  /** No request of any kind before it; a page under way may end. Omitted: no pause. */
  pausedUntil: z.iso.datetime().exactOptional(),
  /**
   * The canary page of an instance that has stored no product: one that another instance has stored. null: unchanged.
   */
  canaryPage: z.string().max(2_000).nullable().default(null),
  /**
   * robots.txt to follow from now on; null: unchanged. An instance that must respect it sends no request before the
   * first.
   */
  robots: robotsPolicySchema.nullable(),
  /**
   * A banned instance returns what it has not crawled: it uploads its results, forgets the rest, and confirms with
   * `pending` 0.
   */
  returnProducts: z.boolean(),
  /** The main server's decision on a suspicion: `ok` ends it, `banned` makes it a ban. null: none yet. */
  verdict: z.enum(['ok', 'banned']).nullable(),
  /** The secrets to send to the site from now on, encrypted to the key of its hello. Omitted: unchanged. */
  secrets: z.strictObject({ version: z.string().max(100), encrypted: z.string().max(1_000_000) }).exactOptional(),
  /**
   * Of many hosts: the next slices of those that it crawls, which no other instance may take. It takes them as it takes
   * offers; they are repeated until it asks for their grants. Omitted: none is due.
   */
  nextSlices: z.array(z.strictObject({ chunk: chunkIdSchema, products: chunkProductsSchema })).exactOptional(),
  /**
   * Of many hosts: what holds for some of those in `grants`, and what an operator asks of others, of which the sender
   * ignores those that it does not have. Omitted: nothing but the interval.
   */
  hosts: z.array(hostOrderSchema).max(100_000).exactOptional(),
  /** Of many hosts: what its heartbeats say from now on, so that what an operator asks need not be repeated. */
  wishes: z.string().max(100).exactOptional(),
  /** The main server's clock, for the request log. For instances that understand `clock`. */
  clock: z.iso.datetime().exactOptional(),
});
export type Orders = z.infer<typeof ordersSchema>;

/** The epoch is closed: its manifest is in the bucket. */
export const completionSchema = z.strictObject({
  manifestKey: z.string(),
  manifestSha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Completion = z.infer<typeof completionSchema>;

/** Answer to hello and completion, and the body of every refusal. */
export const answerSchema = z.strictObject({ ok: z.boolean(), error: z.string().optional() });
