/** What the main server sends to an instance through the load balancer, and the instance's answers. */
import { z } from 'zod';
import { type Refusal, REFUSALS } from '../domain/offer-refusal.ts';
import { MAX_URL_BYTES } from '../domain/own-url.ts';
import { MAX_CHUNK } from '../domain/sharing.ts';
import { validatorsSchema } from './validators.ts';

/** Accepts `POST`; `:run` is the run's id. */
export const offerPath = (run: string): string => `/v1/runs/${run}/products`;
/** Where an instance takes offers, on EC2 and in the sandbox, where every instance has an address of its own. */
export const API_PORT = 8_080;
export const HEALTH_PATH = '/healthz';

/** Maximum request body that an instance reads: twice the size of 500 IDs of 2,000 bytes with JSON escapes. */
export const MAX_OFFER_BYTES = 4_000_000;

const product = z.strictObject({
  n: z.int().positive(),
  id: z.string().min(1),
  validators: validatorsSchema.exactOptional(),
  robots: z.string().max(MAX_URL_BYTES).exactOptional(),
});

export const chunkIdSchema = z.string().regex(/^\d+-\d+$/);
export const chunkProductsSchema = z.array(product).min(1).max(MAX_CHUNK);

/** An offered chunk. The offer is not binding until a heartbeat reply grants it. */
export const offerSchema = z.strictObject({
  /** `<index>-<generation>`: a chunk reassigned from a lost instance is offered under the next generation. */
  chunk: chunkIdSchema,
  /** Maximum products per slot at present; an instance refuses an offer that would exceed it. */
  share: z.int().nonnegative(),
  products: chunkProductsSchema,
});
export type Offer = z.infer<typeof offerSchema>;

/** 202: the instance has journalled the offer. Also sent when it already holds this chunk. */
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

/** 409: no room. */
export const refusalSchema: z.ZodType<Refusal> = z.strictObject({
  refused: z.enum(REFUSALS),
  room: z.int().nonnegative(),
});
