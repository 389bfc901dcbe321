/** The first page that needs the detector waits until it is loaded. */
import { beforeEach, expect, it, vi } from 'vitest';
import type { TextReader } from '../../../crawl-api/fetch/text-reader.ts';
import { CHARSET_SAMPLES } from './charset-samples.ts';

const { text, bytes } = CHARSET_SAMPLES[0]!;

beforeEach(() => void vi.resetModules());

async function openReader(): Promise<{
  reader: TextReader;
  got: string[];
  ready: Promise<void>;
  ended: Promise<void>;
}> {
  const { TextReader } = await import('../../../crawl-api/fetch/text-reader.ts');
  const got: string[] = [];
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const reader = new TextReader('text/html', {
    onText: (piece) => got.push(piece),
    onReady: ready.resolve,
    onEnd: ended.resolve,
  });
  return { reader, got, ready: ready.promise, ended: ended.promise };
}

it('decodes a short page once the detector is loaded', async () => {
  const { reader, got, ended } = await openReader();
  expect(reader.push(bytes)).toBe(true);
  reader.end();
  expect(got).toEqual([]);
  await ended;
  expect(got.join('')).toBe(text);
});

it('applies back-pressure to a long page, and keeps data that arrives anyway', async () => {
  const { reader, got, ready, ended } = await openReader();
  const half = Buffer.concat(Array<Buffer>(1_000).fill(bytes));
  expect(reader.push(half)).toBe(false);
  expect(reader.push(bytes)).toBe(false);
  await ready;
  expect(got.join('')).toBe(text.repeat(1_001));
  expect(reader.push(half)).toBe(true);
  reader.end();
  await ended;
  expect(got.join('')).toBe(text.repeat(2_001));
});

it('shows the text so far while it waits', async () => {
  const { reader } = await openReader();
  reader.push(Buffer.from('<p>Access denied'));
  expect(reader.peek()).toBe('<p>Access denied');
});
