/** The normalised mapping as it travels in user data. */
import { z } from 'zod';
import type { Mapping } from '../domain/mapping.ts';

const selector = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('css'), selector: z.string().min(1), attribute: z.string().min(1).exactOptional() }),
  z.strictObject({ type: z.literal('json_ld'), path: z.string().min(1) }),
]);
const processor = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('trim') }),
  z.strictObject({ type: z.literal('number') }),
  z.strictObject({ type: z.literal('integer') }),
]);

export const mappingSchema: z.ZodType<Mapping> = z.strictObject({
  fields: z
    .array(
      z.strictObject({
        name: z.string(),
        select: selector,
        process: z.array(processor),
        all: z.boolean(),
        required: z.boolean(),
      }),
    )
    .min(1),
});
