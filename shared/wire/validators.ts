/** Validators of pages, from the main server to instances and back. */
import { z } from 'zod';
import { ETAG, HTTP_DATE } from '../domain/validators.ts';

const validators = {
  etag: z.string().regex(ETAG).exactOptional(),
  modified: z.string().regex(HTTP_DATE).exactOptional(),
};

export const validatorsSchema = z.strictObject(validators);
export const pageStampSchema = z.strictObject({ ...validators, bytes: z.int().nonnegative() });
