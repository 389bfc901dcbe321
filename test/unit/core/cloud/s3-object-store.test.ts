import { createReadStream } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { S3ObjectStore } from '../../../../shared/adapters/s3-object-store.ts';

const DAY_MS = 24 * 3_600_000;
const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
const SHA256 = '0'.repeat(64);

interface StoreChange {
  pauses?: number[];
  sse?: string;
}

describe('S3ObjectStore', () => {
  const servers: Server[] = [];
  const stores: S3ObjectStore[] = [];
  afterEach(() => {
    for (const store of stores.splice(0)) store.close();
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  async function storeOn(
    listener: RequestListener,
    { pauses = [], ...change }: StoreChange = {},
  ): Promise<S3ObjectStore> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    servers.push(server);
    await new Promise((resolve) => server.once('listening', resolve));
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const clock = { sleep: (ms: number) => Promise.resolve(void pauses.push(ms)) };
    const store = new S3ObjectStore({ region: 'eu-west-1', bucket: 'b', endpoint, credentials, clock, ...change });
    stores.push(store);
    return store;
  }

  it('signs a URL for at most seven days, the maximum of S3', async () => {
    const store = new S3ObjectStore({ region: 'eu-west-1', bucket: 'b', endpoint: null, credentials });
    stores.push(store);
    const lifeS = async (ms: number): Promise<string | null> =>
      new URL(await store.presignGet('k', ms)).searchParams.get('X-Amz-Expires');
    expect(await lifeS(DAY_MS)).toBe('86400');
    expect(await lifeS(8 * DAY_MS)).toBe('604800');
  });

  it.each<[sse: string, headers: Record<string, string>]>([
    ['AES256', { 'x-amz-server-side-encryption': 'AES256' }],
    ['aws:kms', { 'x-amz-server-side-encryption': 'aws:kms' }],
    [
      'arn:aws:kms:eu-west-1:1:key/k',
      {
        'x-amz-server-side-encryption': 'aws:kms',
        'x-amz-server-side-encryption-aws-kms-key-id': 'arn:aws:kms:eu-west-1:1:key/k',
      },
    ],
  ])('puts every object with the encryption %s', async (sse, headers) => {
    const seen: Record<string, string>[] = [];
    const store = await storeOn(
      (request, response) => {
        const given = Object.entries(request.headers).filter(([name]) => name.startsWith('x-amz-server-side'));
        seen.push(Object.fromEntries(given) as Record<string, string>);
        request.resume().on('end', () => response.end());
      },
      { sse },
    );
    await store.putIfAbsent('k', Uint8Array.of(1), 'text/plain');
    const source = { sizeBytes: 1, sha256: SHA256, open: () => [Uint8Array.of(1)] };
    await store.putSourceIfAbsent('s', source as never, 'text/plain');
    expect(seen).toEqual([headers, headers]);
  });

  it.each([
    ['declares its length', { 'content-length': '900000000' }],
    ['does not declare its length', {}],
  ])('stops reading an object that is too large and %s', async (_, headers) => {
    let sentBytes = 0;
    const store = await storeOn((_request, response) => {
      response.writeHead(200, headers);
      const piece = Buffer.alloc(100_000);
      const send = (): void => {
        while (!response.destroyed && sentBytes < 900_000_000) {
          sentBytes += piece.length;
          if (!response.write(piece)) return void response.once('drain', send);
        }
      };
      send();
    });
    await expect(store.get('k', 1_000_000)).rejects.toMatchObject({ code: 'object-corrupt' });
    // Only data in transit between the two sockets exceeds the limit.
    expect(sentBytes).toBeLessThan(100_000_000);
  });

  it('fails an upload with the read error of its source, without a retry', async () => {
    const store = await storeOn((request) => void request.resume().on('error', () => {}));
    let opened = 0;
    const source = {
      sizeBytes: 3_000_000,
      sha256: SHA256,
      async *open() {
        opened++;
        yield Buffer.alloc(1_000_000);
        yield* createReadStream('/nonexistent/file') as AsyncIterable<Buffer>;
      },
    };
    await expect(store.putSourceIfAbsent('k', source, 'application/gzip')).rejects.toMatchObject({ code: 'ENOENT' });
    expect(opened).toBe(1);
  });

  it('treats a missing key as a missing object, but not a missing bucket', async () => {
    let code = 'NoSuchKey';
    const store = await storeOn((_, response) => {
      response.writeHead(404, { 'content-type': 'application/xml' });
      response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>made up</Message></Error>`);
    });
    expect(await store.get('k')).toBeNull();
    code = 'NoSuchBucket';
    await expect(store.get('k')).rejects.toMatchObject({ name: 'NoSuchBucket' });
  });

  it('pauses before each retry', async () => {
    const pauses: number[] = [];
    let calls = 0;
    const store = await storeOn(
      (request, response) => {
        calls++;
        request.resume().on('end', () => response.writeHead(503).end());
      },
      { pauses },
    );
    const source = {
      sizeBytes: 3,
      sha256: SHA256,
      async *open() {
        yield Uint8Array.of(1, 2, 3);
      },
    };
    await expect(store.putSourceIfAbsent('k', source, 'application/gzip')).rejects.toMatchObject({
      $metadata: { httpStatusCode: 503 },
    });
    expect(calls).toBe(3);
    expect(pauses).toEqual([1_000, 4_000]);
  });
});
