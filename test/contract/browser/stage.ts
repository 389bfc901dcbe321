/** A site of a few scripted pages and a browser source that fetches from it, for the contract tests of the browser. */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, inject, vi } from 'vitest';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { createAddressGuard } from '../../../shared/adapters/http/address-guard.ts';
import type { Extraction, PageExtractor, PageKind } from '../../../crawl-api/extract/page-extractor.ts';
import {
  type BrowserSource,
  type BrowserSourceOptions,
  createBrowserSource,
} from '../../../crawl-api/fetch/browser/browser-source.ts';
import type { FetchHooks, PageAnswer } from '../../../crawl-api/fetch/page-result.ts';
import { expectTitle } from './expect-title.ts';

export type Page = string | ((request: IncomingMessage, response: ServerResponse) => void);

export interface Hit {
  path: string;
  from: string;
  userAgent: string;
}

/** An HTTP server on the address that logs all requests. */
export class Site {
  readonly hits: Hit[] = [];
  /** By path, without the query. A text is an HTML page. */
  readonly pages = new Map<string, Page>();
  /** Connections of any kind, including those without a request. */
  connections = 0;
  readonly #server = createServer((request, response) => this.#answer(request, response));
  readonly #sockets = new Set<Socket>();

  static async start(address: string): Promise<Site> {
    const site = new Site();
    site.#server.on('connection', (socket: Socket) => {
      site.connections++;
      site.#sockets.add(socket);
    });
    site.#server.listen(0, address);
    await once(site.#server, 'listening');
    return site;
  }

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}`;
  }

  paths(): string[] {
    return this.hits.map((hit) => hit.path);
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const userAgent = request.headers['user-agent'] ?? '';
    this.hits.push({ path: pathname, from: request.socket.remoteAddress ?? '', userAgent });
    const page = this.pages.get(pathname);
    if (typeof page === 'function') return page(request, response);
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(page ?? 'no such page');
  }
}

/** The text of the page's h1 is the row; without one, `title` is missing. */
function titleExtractor(_kind: PageKind, _url: string): PageExtractor {
  let html = '';
  const extractor = {
    write: (text: string) => void (html += text),
    end(): Extraction {
      const title = /<h1[^>]*>([^<]+)<\/h1>/.exec(html)?.[1] ?? /"title":"(\w+)"/.exec(html)?.[1];
      if (title === undefined) return { rows: null, missing: 'title', links: [] };
      return { rows: [{ key: null, row: { title } }], missing: null, links: [] };
    },
  };
  return extractor as unknown as PageExtractor;
}

export function titleOf(result: PageAnswer): unknown {
  if (result.kind !== 'page') return result;
  return result.extraction.rows?.[0]?.row.title ?? null;
}

export const NO_HOOKS: FetchHooks = { onStart: () => {}, onFirstByte: () => {} };
export const USER_AGENT = 'examplebot/1.0 (+https://example.org/bot)';
export const LOCAL_ADDRESS = '127.0.7.9';

export interface Stage {
  source: BrowserSource;
  problems: string[];
  profiles(): string[];
  close(): Promise<void>;
}

export type StageOptions = Partial<
  Pick<
    BrowserSourceOptions,
    | 'expect'
    | 'openExtractor'
    | 'patienceMs'
    | 'recycle'
    | 'executablePath'
    | 'profileDirectory'
    | 'guard'
    | 'localAddress'
    | 'userOrigins'
  >
> & {
  timeoutMs?: number;
  maxPageBytes?: number;
};

export async function openStage(site: Site, options: StageOptions = {}): Promise<Stage> {
  const { timeoutMs = 20_000, maxPageBytes = 5_000_000, ...rest } = options;
  const folder = mkdtempSync(path.join(tmpdir(), 'browser-stage-'));
  const problems: string[] = [];
  const source = await createBrowserSource({
    executablePath: chromiumPath(),
    localAddress: LOCAL_ADDRESS,
    guard: createAddressGuard({ productUrl: `${site.url}/p/{id}`, allowPrivate: false, forbidden: [] }),
    settings: { userAgent: USER_AGENT, timeoutMs, maxPageBytes },
    openExtractor: titleExtractor,
    expect: expectTitle(),
    // Scripts of these pages have done their work after a moment, unless a test says otherwise.
    patienceMs: 300,
    clock: systemClock,
    profileDirectory: folder,
    onProblem: (text) => problems.push(text),
    ...rest,
  }).catch((error: unknown) => {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  });
  return {
    source,
    problems,
    profiles: () => readdirSync(folder),
    async close() {
      await source.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function chromiumPath(): string {
  return inject('chromiumPath');
}

export const neverAborted = (): AbortSignal => new AbortController().signal;

/** A process that has just ended is a zombie until Node reaps it; one that is never reaped stays. */
export const expectNoZombies = (): Promise<void> =>
  vi.waitFor(() => expect(zombieChildren()).toEqual([]), { timeout: 15_000 });

function zombieChildren(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return state === 'Z' && Number(parent) === process.pid;
      } catch {
        return false;
      }
    });
}
