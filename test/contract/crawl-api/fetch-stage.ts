/** A fetcher whose extractor returns the text it was fed, servers to fetch from, and their cleanup. */
import type http from 'node:http';
import net from 'node:net';
import { afterEach } from 'vitest';
import type { PageExtractor, PageKind } from '../../../crawl-api/extract/page-extractor.ts';
import { type OpenExtractor, PageFetcher } from '../../../crawl-api/fetch/page-fetcher.ts';
import type { FetchHooks, PageAnswer } from '../../../crawl-api/fetch/page-result.ts';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import type { Lookup } from '../../../shared/adapters/http/guarded-lookup.ts';
import { createTargetDispatcher } from '../../../shared/adapters/http/target-dispatcher.ts';
import type { ProductUrl } from '../../../shared/domain/domains.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { ownAddress, startStub, type Stub } from './http-stub.ts';

export const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

export const html = { 'content-type': 'text/html; charset=utf-8' };
export const noHooks: FetchHooks = { onStart: () => undefined, onFirstByte: () => undefined };

export async function serve(
  handle: (request: http.IncomingMessage, response: http.ServerResponse) => void,
  address = ownAddress(),
): Promise<Stub> {
  const stub = await startStub((request, _body, response) => handle(request, response), address);
  cleanups.push(stub.close);
  return stub;
}

/** Answers every request with these bytes. */
export function serveBytes(headers: http.OutgoingHttpHeaders, body: Uint8Array | string, status = 200): Promise<Stub> {
  return serve((_request, response) => void response.writeHead(status, headers).end(body));
}

/** Sends this piece again and again, as fast as it is read; returns how many bytes there were so far. */
export function pour(response: http.ServerResponse, piece: string): () => number {
  let sent = 0;
  const next = (): void => {
    if (response.destroyed) return;
    sent += piece.length;
    response.write(piece, () => setImmediate(next));
  };
  next();
  return () => sent;
}

/** A raw TCP server: `act` is called when the first bytes of a connection arrive. */
export async function serveRaw(act: (socket: net.Socket) => void): Promise<{ url: string }> {
  const address = ownAddress();
  const open = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    socket.once('data', () => act(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  cleanups.push(() => {
    for (const socket of open) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://${address}:${(server.address() as net.AddressInfo).port}/` };
}

/** Like a mapping with two fields: `text`, the whole page, and `kind`, how it was read. */
const echo: OpenExtractor = (kind: PageKind) => {
  let text = '';
  const extractor: Pick<PageExtractor, 'write' | 'end'> = {
    write: (piece) => void (text += piece),
    end: () => ({ rows: [{ key: null, row: { kind, text } }], missing: null, links: [] }),
  };
  return extractor as PageExtractor;
};

export interface FetchOptions {
  template?: string;
  timeoutMs?: number;
  maxPageBytes?: number;
  localAddress?: string;
  allowPrivate?: boolean;
  forbidden?: { address: string; port: number }[];
  lookup?: Lookup;
  openExtractor?: OpenExtractor;
  hooks?: FetchHooks;
  signal?: AbortSignal;
}

export function createFetcher(template: ProductUrl, options: FetchOptions): PageFetcher {
  const { timeoutMs = 5_000, maxPageBytes = 100_000, allowPrivate = false, forbidden = [] } = options;
  const dispatcher = createTargetDispatcher({
    localAddress: options.localAddress ?? ownAddress(),
    guard: createAddressGuard({ productUrl: template, allowPrivate, forbidden }),
    connectTimeoutMs: timeoutMs,
    ...(options.lookup ? { lookup: options.lookup } : {}),
  });
  const settings = { userAgent: 'testbot/1.0', timeoutMs, maxPageBytes };
  const fetcher = new PageFetcher(dispatcher, settings, systemClock, options.openExtractor ?? echo);
  cleanups.push(() => fetcher.close());
  return fetcher;
}

export function fetchPage(url: string, options: FetchOptions = {}): Promise<PageAnswer> {
  const fetcher = createFetcher(options.template ?? url, options);
  return fetcher.fetch(url, options.hooks ?? noHooks, options.signal ?? new AbortController().signal);
}

/** A page with this text, read as this kind. */
export const page = (text: string, kind: PageKind = 'html'): object => ({
  kind: 'page',
  extraction: { rows: [{ key: null, row: { kind, text } }], missing: null },
});
