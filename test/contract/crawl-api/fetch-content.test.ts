/** How bodies are handled: compressed, too large, of the wrong type, or no page at all. */
import { fork } from 'node:child_process';
import zlib from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { compileMapping } from '../../../crawl-api/extract/compile-mapping.ts';
import { PageExtractor } from '../../../crawl-api/extract/page-extractor.ts';
import { BUDGET_BYTES } from '../../../crawl-api/fetch/page-budget.ts';
import type { OpenExtractor } from '../../../crawl-api/fetch/page-fetcher.ts';
import type { Step as FieldStep } from '../../../shared/domain/mapping.ts';
import {
  cleanups,
  createFetcher,
  fetchPage,
  html,
  noHooks,
  page,
  pour,
  serve,
  serveBytes,
  serveRaw,
} from './fetch-stage.ts';

const PAGE = `<h1>Tea 茶</h1>${' '.repeat(50_000)}`;

type Coder = (body: string | Uint8Array) => Buffer;
const coders: Record<string, Coder> = {
  gzip: (body) => zlib.gzipSync(body),
  br: (body) => zlib.brotliCompressSync(body),
  deflate: (body) => zlib.deflateSync(body),
  zstd: (body) => zlib.zstdCompressSync(body),
};

describe('a compressed page', () => {
  it.each<[string, Coder]>([
    ['gzip', coders.gzip!],
    ['x-gzip', coders.gzip!],
    ['GZIP', coders.gzip!],
    ['br', coders.br!],
    ['deflate', coders.deflate!],
    ['deflate', (text) => zlib.deflateRawSync(text)],
    ['zstd', coders.zstd!],
    ['identity', (text) => Buffer.from(text)],
    ['utf-8', (text) => Buffer.from(text)],
    ['gzip, br', (text) => coders.br!(coders.gzip!(text))],
    ['br, gzip', (text) => coders.gzip!(coders.br!(text))],
    ['identity, gzip', coders.gzip!],
    ['gzip,gzip,zstd', (text) => coders.zstd!(coders.gzip!(coders.gzip!(text)))],
  ])('is decoded from %s', async (encoding, compress) => {
    const shop = await serveBytes({ ...html, 'content-encoding': encoding }, compress(PAGE));
    expect(await fetchPage(shop.url)).toMatchObject(page(PAGE));
  });

  it.each(['gzip', 'br', 'deflate', 'zstd', 'gzip, br'])(
    'is read unchanged when it only claims to be %s',
    async (encoding) => {
      const shop = await serveBytes({ ...html, 'content-encoding': encoding }, PAGE);
      expect(await fetchPage(shop.url)).toMatchObject(page(PAGE));
    },
  );

  it('is decoded when it arrives byte by byte', async () => {
    const bytes = zlib.gzipSync('<p>Tea 茶');
    const shop = await serve((_request, response) => {
      response.writeHead(200, { ...html, 'content-encoding': 'gzip' });
      const write = (at: number): void => {
        if (at >= bytes.length) response.end();
        else response.write(bytes.subarray(at, at + 1), () => setImmediate(write, at + 1));
      };
      write(0);
    });
    expect(await fetchPage(shop.url)).toMatchObject(page('<p>Tea 茶'));
  });

  it.each(['gzip', 'br', 'deflate', 'zstd'])('is rejected when it is cut off, as %s', async (encoding) => {
    // More than a checksum is missing.
    const body = coders[encoding]!(PAGE + Math.random()).subarray(0, -12);
    const shop = await serveBytes({ ...html, 'content-encoding': encoding }, body);
    expect(await fetchPage(shop.url)).toMatchObject({
      kind: 'failed',
      reason: 'network',
      detail: expect.stringContaining(`broken ${encoding}`) as string,
    });
  });

  it('is rejected when it is damaged', async () => {
    const body = zlib.gzipSync(PAGE);
    body.fill(0xff, 20, 30);
    const shop = await serveBytes({ ...html, 'content-encoding': 'gzip' }, body);
    expect(await fetchPage(shop.url)).toMatchObject({ reason: 'network' });
  });

  it('is not read under more layers than any real server uses', async () => {
    const body = zlib.gzipSync(zlib.gzipSync(zlib.gzipSync(zlib.gzipSync(PAGE))));
    const shop = await serveBytes({ ...html, 'content-encoding': 'gzip, gzip, gzip, gzip' }, body);
    expect(await fetchPage(shop.url)).toMatchObject({ reason: 'content-type' });
  });

  const behind = Buffer.from('\n<!-- cached -->');
  it.each<[string, string, (text: string) => Uint8Array]>([
    ['gzip without its trailer', 'gzip', (text) => zlib.gzipSync(text).subarray(0, -8)],
    ['gzip with half of its trailer', 'gzip', (text) => zlib.gzipSync(text).subarray(0, -4)],
    [
      'gzip with a wrong checksum',
      'gzip',
      (text) => Buffer.concat([zlib.gzipSync(text).subarray(0, -8), Buffer.alloc(8, 1)]),
    ],
    ['gzip with bytes behind its end', 'gzip', (text) => Buffer.concat([zlib.gzipSync(text), behind])],
    ['gzip with zeros behind its end', 'gzip', (text) => Buffer.concat([zlib.gzipSync(text), Buffer.alloc(20)])],
    [
      'gzip with all that its header may have',
      'gzip',
      (text) => {
        const [fixed, rest] = [zlib.gzipSync(text).subarray(0, 10), zlib.gzipSync(text).subarray(10)];
        fixed[3] = 0xff;
        return Buffer.concat([fixed, Buffer.from('\x03\0abcname\0comment\0\x12\x34', 'latin1'), rest]);
      },
    ],
    [
      'gzip that was flushed and not ended',
      'gzip',
      (text) => zlib.gzipSync(text, { finishFlush: zlib.constants.Z_SYNC_FLUSH }),
    ],
    ['deflate without its checksum', 'deflate', (text) => zlib.deflateSync(text).subarray(0, -4)],
    [
      'deflate that was flushed and not ended',
      'deflate',
      (text) => zlib.deflateSync(text, { finishFlush: zlib.constants.Z_SYNC_FLUSH }),
    ],
    ['deflate with bytes behind its end', 'deflate', (text) => Buffer.concat([zlib.deflateRawSync(text), behind])],
    ['br with bytes behind its end', 'br', (text) => Buffer.concat([zlib.brotliCompressSync(text), behind])],
    ['an unknown encoding', 'aws-chunked', (text) => Buffer.from(text)],
    ['an encoding that is a charset', 'iso-8859-1', (text) => Buffer.from(text)],
    ['an unknown encoding and gzip', 'aws-chunked,gzip', (text) => zlib.gzipSync(text)],
  ])('is read as by a browser: %s', async (_what, encoding, compress) => {
    const body = Buffer.from(compress(PAGE));
    for (const pieceBytes of [Math.ceil(body.length / 300), Infinity]) {
      const shop = await serve((_request, response) => {
        response.writeHead(200, { ...html, 'content-encoding': encoding, 'content-length': body.length });
        const write = (at: number): void => {
          if (at >= body.length) response.end();
          else response.write(body.subarray(at, at + pieceBytes), () => setImmediate(write, at + pieceBytes));
        };
        write(0);
      });
      expect(await fetchPage(shop.url)).toMatchObject(page(PAGE));
    }
  });

  it.each(['gzip', 'deflate'])(
    'of a connection that breaks is rejected, whatever has arrived of it, as %s',
    async (encoding) => {
      const body = coders[encoding]!(PAGE);
      const shop = await serve((_request, response) => {
        response.writeHead(200, { ...html, 'content-encoding': encoding, 'content-length': body.length + 1 });
        response.write(body, () => response.destroy());
      });
      expect(await fetchPage(shop.url)).toMatchObject({ kind: 'failed', reason: 'network' });
    },
  );

  it.each([
    ['is complete at the end of a connection', 0, 'page'],
    ['is not complete when another length was declared', 1, 'failed'],
  ])('whose declared length is that of the text %s', async (_what, more, kind) => {
    const shop = await serveRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n');
      socket.write(`Content-Length: ${Buffer.byteLength(PAGE) + more}\r\n\r\n`);
      socket.end(zlib.gzipSync(PAGE));
    });
    expect(await fetchPage(shop.url)).toMatchObject(
      kind === 'page' ? page(PAGE) : { kind, detail: expect.stringMatching(/^the server has closed/) as string },
    );
  });

  it.each(['lzma', 'compress', 'x-deflate'])(
    'in an unknown encoding that is no text is no page: %s',
    async (encoding) => {
      const shop = await serveBytes({ ...html, 'content-encoding': encoding }, zlib.deflateSync(PAGE.repeat(9)));
      expect(await fetchPage(shop.url)).toMatchObject({
        reason: 'content-type',
        detail: `content-encoding ${encoding} is not supported`,
      });
    },
  );

  it('of an error is read, too', async () => {
    const shop = await serveBytes({ ...html, 'content-encoding': 'br' }, coders.br!('<p>Access denied'), 403);
    expect(await fetchPage(shop.url)).toMatchObject({ reason: 'http-status', reply: { body: '<p>Access denied' } });
  });
});

describe('pages beyond the limits', () => {
  it.each(['identity', 'gzip', 'br', 'zstd', 'deflate'])('fail over the cap, as %s (F33)', async (encoding) => {
    const text = `<h1>x</h1>${' '.repeat(2_000_000)}`;
    const body = coders[encoding]?.(text) ?? text;
    const shop = await serveBytes({ ...html, 'content-encoding': encoding }, body);
    expect(await fetchPage(shop.url)).toMatchObject({
      kind: 'failed',
      reason: 'too-large',
      detail: 'more than 100000 bytes',
      reply: { status: 200, complete: false },
    });
  });

  it('fail over the cap when there are 50 MB of them (F33)', async () => {
    const shop = await serveBytes(html, Buffer.alloc(50_000_000, '<p>more</p>'));
    expect(await fetchPage(shop.url, { maxPageBytes: 5_000_000 })).toMatchObject({ reason: 'too-large' });
  });

  it('fail when they never end (F33)', async () => {
    const shop = await serve((_request, response) => {
      response.writeHead(200, html);
      pour(response, '<p>more</p>'.repeat(1_000));
    });
    expect(await fetchPage(shop.url)).toMatchObject({ reason: 'too-large' });
  });

  it.each<[string, FieldStep, string]>([
    ['a tree of 10^6 nodes', { type: 'xpath', expression: '//h1' }, '<i>x</i>'.repeat(500_000)],
    ['tags that nest too deep', { type: 'css', selector: 'h1' }, '<b>'.repeat(100_000)],
  ])('fail at %s (F33)', async (_what, step, body) => {
    const field = { name: 'title', steps: [step], required: true };
    const mapping = await compileMapping({
      pages: [{ name: 'item', urlPatterns: [], urlParsers: [], rows: null, fields: [field] }],
    });
    const openExtractor: OpenExtractor = (kind, url) => new PageExtractor(mapping, kind, url);
    const shop = await serve((request, response) => {
      response.writeHead(200, html).end(request.url === '/good' ? '<h1>Tea' : body);
    });
    const fetcher = createFetcher(shop.url, { maxPageBytes: 20_000_000, openExtractor });
    const signal = new AbortController().signal;
    expect(await fetcher.fetch(`${shop.url}/bad`, noHooks, signal)).toMatchObject({
      kind: 'failed',
      reason: 'too-large',
      reply: { status: 200, complete: false },
    });
    expect(await fetcher.fetch(`${shop.url}/good`, noHooks, signal)).toMatchObject({
      kind: 'page',
      extraction: { rows: [{ key: null, row: { title: 'Tea' } }], missing: null },
    });
  });

  it('of the extractor fail with parse when it throws', async () => {
    const broken = { write: () => undefined, end: () => fail() } as unknown as PageExtractor;
    const fail = (): never => {
      throw new TypeError('a fault of ours');
    };
    const shop = await serveBytes(html, '<h1>Tea');
    expect(await fetchPage(shop.url, { openExtractor: () => broken })).toMatchObject({
      reason: 'parse',
      detail: 'a fault of ours',
      reply: { body: '<h1>Tea' },
    });
  });

  // A gzip file may consist of many in sequence, so a gigabyte takes no longer to make than 16 MB.
  const gigabyte = (): Buffer => Buffer.concat(Array<Buffer>(64).fill(zlib.gzipSync(Buffer.alloc(16_777_216))));

  it.each<[string, string, () => Buffer]>([
    ['1 GB', 'gzip', gigabyte],
    ['1 GB', 'gzip, gzip', () => zlib.gzipSync(gigabyte())],
    ['128 MB', 'br', () => compressQuickly(Buffer.alloc(134_217_728))],
    ['128 MB', 'zstd', () => zlib.zstdCompressSync(Buffer.alloc(134_217_728))],
  ])('leave memory flat when a bomb of %s goes off, as %s (F33)', async (_size, encoding, makeBomb) => {
    const shop = await serveBytes({ ...html, 'content-encoding': encoding }, makeBomb());
    const { result, grownMb } = await fetchElsewhere(`${shop.url}/`, 5_000_000);
    expect(result).toMatchObject({ reason: 'too-large', detail: 'more than 5000000 bytes' });
    expect(grownMb).toBeLessThan(60);
  });
});

describe('pages that are read at the same time', () => {
  const bytes = BUDGET_BYTES;
  const text = 'word '.repeat(bytes / 5);

  it.each<[string, (body: string) => Uint8Array | string]>([
    ['plain', (body) => body],
    ['gzip', (body) => zlib.gzipSync(body)],
    ['br', (body) => compressQuickly(Buffer.from(body))],
  ])('are all read to their ends, sent as %s, though together they exceed the budget', async (encoding, pack) => {
    const sent = pack(text);
    const shops = await Promise.all(
      Array.from({ length: 6 }, () =>
        serveBytes({ ...html, ...(encoding !== 'plain' && { 'content-encoding': encoding }) }, sent),
      ),
    );
    const template = shops.map(({ url }) => ({ url: `${url}/{id}`, weight: 1 }));
    const fetcher = createFetcher(template, { maxPageBytes: 2 * bytes });
    const { signal } = new AbortController();
    for (let round = 0; round < 3; round++) {
      const pages = await Promise.all(shops.map(({ url }) => fetcher.fetch(`${url}/p${round}`, noHooks, signal)));
      for (const one of pages) expect(one).toMatchObject(page(text));
    }
  });

  it('do not fail for the time that they wait for others', async () => {
    const endless = () =>
      serve((_request, response) => void response.writeHead(200, html).write('slow '.repeat(bytes / 5)));
    const shops = [await endless(), await endless(), await serveBytes(html, text)];
    const template = shops.map(({ url }) => ({ url: `${url}/{id}`, weight: 1 }));
    const fetcher = createFetcher(template, { maxPageBytes: 2 * bytes, timeoutMs: 2_000 });
    const { signal } = new AbortController();
    const read = shops.map(({ url }) => fetcher.fetch(`${url}/p`, noHooks, signal));
    // It waits for both of the others, longer than a page may take.
    expect(await read[2]).toMatchObject(page(text));
    for (const one of await Promise.all(read.slice(0, 2)))
      expect(one).toMatchObject({ kind: 'failed', reason: 'timeout' });
  });
});

const compressQuickly = (body: Buffer): Buffer =>
  zlib.brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } });

/** In a separate process, because this one's memory is that of its tests. */
async function fetchElsewhere(url: string, maxPageBytes: number): Promise<{ result: unknown; grownMb: number }> {
  const child = fork(new URL('fetch-child.ts', import.meta.url), [url, String(maxPageBytes)], { execArgv: [] });
  cleanups.push(() => child.kill('SIGKILL'));
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as { result: unknown; grownMb: number }));
    child.once('disconnect', () => reject(new Error('the process ended without a result')));
  });
}

describe('the kind of a page', () => {
  const HTML = '<!doctype html><h1>Tea';
  const JSON_TEXT = '{"name": "Tea"}';
  const XML = '<?xml version="1.0"?><products/>';
  const RSS = '<?xml version="1.0"?>\n<!-- x --><rss><item/></rss>';

  it.each<[string | null, string, 'html' | 'xml' | 'json']>([
    ['text/html', HTML, 'html'],
    ['application/xhtml+xml', HTML, 'html'],
    [null, HTML, 'html'],
    [null, 'Tea', 'html'],
    ['text/plain', HTML, 'html'],
    ['text/plain; charset=utf-8', `\n\n  ${HTML}`, 'html'],
    ['text/plain', 'price=12', 'html'],
    ['application/octet-stream', HTML, 'html'],
    ['html', HTML, 'html'],
    ['application/xml', XML, 'xml'],
    ['text/xml', '<products/>', 'xml'],
    ['application/rss+xml', RSS, 'xml'],
    ['text/plain', XML, 'xml'],
    ['text/html', RSS, 'xml'],
    ['text/html', '<?xml version="1.0"?><!DOCTYPE html><html>', 'html'],
    ['application/json', JSON_TEXT, 'json'],
    ['application/ld+json', '[1]', 'json'],
    ['text/html', JSON_TEXT, 'json'],
    ['text/plain', ' [{"a": 1}]', 'json'],
    ['application/javascript', JSON_TEXT, 'json'],
    ['application/octet-stream', JSON_TEXT, 'json'],
    ['application/json', HTML, 'html'],
    ['application/xml', HTML, 'html'],
    ['application/xml', JSON_TEXT, 'json'],
    ['text/html', '{{ template }}', 'html'],
    ['text/html', '[Tea] <h1>Tea', 'html'],
  ])('%s with %j is %s', async (type, body, kind) => {
    const shop = await serveBytes(type === null ? {} : { 'content-type': type }, body);
    expect(await fetchPage(shop.url)).toMatchObject(page(body, kind));
  });

  it.each<[string, string | Buffer, Record<string, string>?]>([
    ['image/png', 'x'],
    ['image/svg+xml', '<svg/>'],
    ['video/mp4', 'x'],
    ['application/pdf', '%PDF-1.7'],
    ['application/zip', 'PK'],
    ['font/woff2', 'x'],
    ['text/html', '%PDF-1.7\n%rest'],
    ['text/html', Buffer.from('89504e470d0a1a0a', 'hex')],
    ['text/plain', Buffer.from('504b030414', 'hex')],
    ['text/html', Buffer.from('000000186674797069736f6d', 'hex')],
    ['text/html', zlib.gzipSync('<h1>packed twice, said once')],
    ['text/plain', 'a\0b'],
    ['application/octet-stream', 'MZ anything'],
    ['application/octet-stream', HTML, { 'content-disposition': 'attachment; filename=x' }],
  ])('%s with %j is no page', async (type, body, headers = {}) => {
    const shop = await serveBytes({ 'content-type': type, ...headers }, body);
    expect(await fetchPage(shop.url)).toMatchObject({ kind: 'failed', reason: 'content-type', reply: { status: 200 } });
  });

  it('a reply that is no page is not read, and the next one is still fetched', async () => {
    let sent = (): number => 0;
    const shop = await serve((request, response) => {
      if (request.url === '/page') {
        response.writeHead(200, html).end(HTML);
        return;
      }
      response.writeHead(200, { 'content-type': 'video/mp4' });
      sent = pour(response, 'x'.repeat(65_536));
    });
    const fetcher = createFetcher(shop.url, {});
    const signal = new AbortController().signal;
    expect(await fetcher.fetch(`${shop.url}/video`, noHooks, signal)).toMatchObject({
      reason: 'content-type',
      detail: 'content-type video/mp4',
    });
    expect(await fetcher.fetch(`${shop.url}/page`, noHooks, signal)).toMatchObject(page(HTML));
    expect(sent()).toBeLessThan(20_000_000);
  });
});
