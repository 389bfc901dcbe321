/** Forms of values that several sections of the configuration share. */
import { z } from 'zod';
import { parseDuration, parseRate, parseShare, parseSize } from '../../../shared/domain/quantity.ts';

/** A text form parsed by `parse`; null means the text has another form. */
function quantity(parse: (text: string) => number | null, expected: string) {
  return z.union([z.string(), z.number()], { error: `must be ${expected}` }).transform((value, context) => {
    const parsed = parse(String(value));
    if (parsed === null)
      context.addIssue({ code: 'custom', message: `must be ${expected}, not ${JSON.stringify(value)}` });
    return parsed ?? 0;
  });
}

/** Unset by default, and with `null`. */
export const orNull = <T extends z.ZodType>(schema: T) => schema.nullable().default(null);
export const duration = () => quantity(parseDuration, 'a duration such as 200ms, 10s, 4h or 1h30m');
export const positiveDuration = () =>
  duration().refine((ms) => ms > 0, { error: 'must be longer than zero', abort: true });
export const size = () => quantity(parseSize, 'a size such as 500KB or 5MB');
export const rate = () => quantity(parseRate, 'a rate such as 5/s or 30/m');
export const share = () => quantity(parseShare, 'a share such as 5% or 0.05');
export const text = () => z.string().min(1, 'must not be empty');
export const httpUrl = () =>
  z.url({ protocol: /^https?$/, error: 'must be a URL that begins with http:// or https://' });

/** Refused if the function finds a fault in it. */
export const checked = <T extends z.ZodType>(schema: T, findFault: (value: z.output<T>) => string | null) =>
  schema.superRefine((value, context) => {
    const fault = findFault(value);
    if (fault) context.addIssue({ code: 'custom', message: fault });
  });

/** The name of an AWS region. */
export const REGION = /^[a-z]{2,4}(-[a-z]+)+-\d$/;
