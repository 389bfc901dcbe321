/** docs/http-api.md against the schemas: its examples are messages, with every field that one has. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { describe, expect, it } from 'vitest';
import { completionSchema, heartbeatSchema, helloSchema, ordersSchema } from '../../../shared/wire/callbacks.ts';
import { offerSchema, receiptSchema, refusalSchema } from '../../../shared/wire/instance-api.ts';

const page = readFileSync(new URL('../../../docs/http-api.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^```json\n([^]*?)^```$/gm)].map(([, text]) => text!);

/** In the order of the page. */
const MESSAGES: [name: string, schema: z.ZodType][] = [
  ['hello', helloSchema],
  ['heartbeat', heartbeatSchema],
  ['orders', ordersSchema],
  ['completion', completionSchema],
  ['offer', offerSchema],
  ['receipt', receiptSchema],
  ['refusal', refusalSchema],
];

describe('docs/http-api.md', () => {
  it('has one example for each message', () => {
    expect(examples).toHaveLength(MESSAGES.length);
  });

  it.each(MESSAGES.map(([name, schema], i) => [name, schema, examples[i] ?? ''] as const))(
    'has a whole and valid %s',
    (_, schema, text) => {
      const example: unknown = JSON.parse(text);
      // A field that the page lacks would get its default here.
      expect(schema.parse(example)).toEqual(example);
    },
  );
});
