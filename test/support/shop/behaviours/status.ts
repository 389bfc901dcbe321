/** Answers with another status: gone, broken, refused, elsewhere. */
import { z } from 'zod';
import type { Exchange } from './behaviour.ts';

export const statusShapes = [
  z.strictObject({
    type: z.literal('status'),
    status: z.int().min(400).max(599),
    /** Value of Retry-After; any text, since sites send any text. */
    retryAfter: z.string().optional(),
  }),
  z.strictObject({
    type: z.literal('redirect'),
    to: z.string().min(1),
    status: z.union([z.literal(301), z.literal(302), z.literal(303), z.literal(307), z.literal(308)]).default(302),
  }),
] as const;

export type StatusBehaviour = z.output<(typeof statusShapes)[number]>;

export function answerStatus({ response }: Exchange, behaviour: StatusBehaviour): void {
  if (behaviour.type === 'redirect') response.setHeader('location', behaviour.to);
  else if (behaviour.retryAfter !== undefined) response.setHeader('retry-after', behaviour.retryAfter);
  response.writeHead(behaviour.status, { 'content-type': 'text/html; charset=utf-8' });
  response.end(`<!doctype html><title>${behaviour.status}</title><h1>${behaviour.status}</h1>`);
}
