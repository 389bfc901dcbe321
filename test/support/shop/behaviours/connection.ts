/** Faults below HTTP: no response, a late one, a broken connection. */
import { z } from 'zod';
import type { Answers } from './behaviour.ts';

export const connectionShapes = [
  /** Never answers. */
  z.strictObject({ type: z.literal('hang') }),
  /** Resets the connection. */
  z.strictObject({ type: z.literal('reset') }),
  /** Answers normally, after `ms`. */
  z.strictObject({ type: z.literal('slow'), ms: z.int().min(0) }),
] as const;

export const connectionAnswers: Answers<z.output<(typeof connectionShapes)[number]>> = {
  slow: (exchange, { ms }) => exchange.later(ms, () => exchange.sendPage()),
  hang: () => undefined,
  reset: ({ response }) => response.socket?.resetAndDestroy(),
};
