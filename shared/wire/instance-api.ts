/** What the main server says to an instance through the balancer, and what the instance answers. */
import { z } from 'zod';
import { MAX_CHUNK } from '../domain/sharing.ts';

/** `POST` here; `:run` is the run's id. */
export const offerPath = (run: string): string => `/v1/runs/${run}/products`;
export const HEALTH_PATH = '/healthz';

/** Largest request body an instance reads: 500 IDs of 2,000 bytes with JSON escapes fit twice over. */
export const MAX_OFFER_BYTES = 4_000_000;

const product = z.strictObject({ n: z.int().positive(), id: z.string().min(1) });

/** A chunk on offer. It binds nobody until a heartbeat reply grants it. */
export const offerSchema = z.strictObject({
  /** `<index>-<generation>`: a chunk that came back from a lost instance is offered under the next generation. */
  chunk: z.string().regex(/^\d+-\d+$/),
  /** How many products one slot is due at present; an instance refuses what would take it above. */
  share: z.int().nonnegative(),
  products: z.array(product).min(1).max(MAX_CHUNK),
});
export type Offer = z.infer<typeof offerSchema>;

/** 202: the instance has journalled the offer. Also sent when it holds this chunk already. */
export const receiptSchema = z.strictObject({
  chunk: z.string(),
  run: z.string(),
  slot: z.int(),
  epoch: z.int(),
  instanceId: z.string(),
  /** Products held after this offer, granted or not. */
  held: z.int(),
});
export type Receipt = z.infer<typeof receiptSchema>;

export const REFUSALS = ['share', 'deadline', 'sealed', 'draining', 'disk', 'banned'] as const;
/** 409: no room. `room` is how many products it would still take. */
export const refusalSchema = z.strictObject({ refused: z.enum(REFUSALS), room: z.int().nonnegative() });
export type Refusal = z.infer<typeof refusalSchema>;
