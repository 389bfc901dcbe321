/**
 * What the shop's visitors see: product pages, review pages and their parts; on request, pages that link to each other.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ArrivalKind } from './arrivals.ts';
import type { Bans } from './bans.ts';
import { type Behaviour, misbehave } from './behaviour-schema.ts';
import { type Exchange, sendHtml, sendNamed } from './behaviours/behaviour.ts';
import { dataOf } from './behaviours/content.ts';
import { partsOf } from './behaviours/scripted.ts';
import { LinkedShop } from './linked/linked-shop.ts';
import { robotsWithSitemaps, sendSitemap, sitemapChunks } from './linked/sitemaps.ts';
import { Wiki } from './linked/wiki.ts';
import { renderPage } from './page.ts';
import type { ApiRequest } from './post-api.ts';
import { behaviourOfPrefix } from './prefixes.ts';
import { STRANGE_IDS, expectedProduct, numberOfProduct } from './product.ts';
import { renderReviews } from './reviews.ts';
import type { Rules } from './rules.ts';
import { productOfSlug } from './slugs.ts';

export interface ShopSettings {
  seed: number;
  /** Number of numbered products, in addition to STRANGE_IDS and IDs with a misbehaving prefix. */
  products: number;
  /** Front page, categories, search, sitemaps and traps (linked/linked-shop.ts); default: none. */
  linked?: boolean;
  /** Pages of the wiki (linked/wiki.ts); default: none. */
  wiki?: number;
}

/** The parsed target of a request. */
export interface Place {
  kind: ArrivalKind;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  /** Product ID, decoded; null when the path is not a product page. */
  id: string | null;
  /** Of a POST to one of the shop's APIs. */
  asked?: ApiRequest;
}

/** Paths of page assets. */
const ASSETS = /^\/(?:img|font|media)\/|^\/favicon\.ico$/;
const DATA = /^\/api\//;
const SITEMAP = /^\/sitemap[\w-]*\.xml(?:\.gz)?$/;

export function placeOf(url: string): Place {
  const cut = url.indexOf('?');
  const path = cut < 0 ? url : url.slice(0, cut);
  const query = new URLSearchParams(cut < 0 ? '' : url.slice(cut));
  if (path === '/robots.txt') return { kind: 'robots', path, query, id: null };
  if (SITEMAP.test(path)) return { kind: 'sitemap', path, query, id: null };
  if (ASSETS.test(path)) return { kind: 'asset', path, query, id: null };
  if (DATA.test(path)) return { kind: 'data', path, query, id: decodedId(path, '/api/item/') };
  const id = decodedId(path, '/item/') ?? decodedId(path, '/reviews/') ?? productOfSlug(path);
  return { kind: 'page', path, query, id };
}

/** A slash within an ID is encoded as %2F. */
function decodedId(path: string, folder: string): string | null {
  const encoded = path.startsWith(folder) ? path.slice(folder.length) : '';
  if (encoded === '' || encoded.includes('/')) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}

export class Site {
  readonly #settings: ShopSettings;
  readonly #sold: Set<string>;
  readonly #rules: Rules;
  readonly #bans: Bans;
  /** The text of robots.txt; null: none, in a linked shop its own. */
  robots: string | null = null;
  readonly #linked: LinkedShop | null;
  readonly #wiki: Wiki | null;

  constructor(settings: ShopSettings, parts: { rules: Rules; bans: Bans }) {
    this.#settings = settings;
    this.#sold = new Set(STRANGE_IDS);
    this.#rules = parts.rules;
    this.#bans = parts.bans;
    this.#linked = settings.linked ? new LinkedShop(settings) : null;
    this.#wiki = settings.wiki ? new Wiki(settings.wiki, settings.seed) : null;
  }

  sell(ids: readonly string[]): void {
    for (const id of ids) this.#sold.add(id);
  }

  serve(request: IncomingMessage, response: ServerResponse, place: Place, address: string): void {
    const origin = `http://${request.headers.host}`;
    if (place.kind === 'robots') return this.#sendRobots(response, origin);
    const refusal = place.kind === 'page' ? this.#bans.take(address) : this.#bans.peek(address);
    if (refusal) return misbehave(this.#exchange(response, place), refusal);
    if (place.asked) return this.#sendAsked(response, place, place.asked);
    if (request.method !== 'GET' && request.method !== 'HEAD') return sendNote(response, 405, 'method not allowed');
    switch (place.kind) {
      case 'asset':
        return void response.writeHead(200, { 'content-type': 'application/octet-stream' }).end('an asset');
      case 'data':
        return this.#sendData(response, place);
      case 'sitemap':
        return this.#sendSitemap(response, place.path, origin);
      case 'page':
        return this.#sendPage(response, place);
    }
  }

  #sendRobots(response: ServerResponse, origin: string): void {
    const text = this.robots ?? (this.#linked ? robotsWithSitemaps(origin) : null);
    if (text === null) return sendNote(response, 404, 'no such page');
    response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
  }

  #sendSitemap(response: ServerResponse, path: string, origin: string): void {
    const chunks = this.#linked && sitemapChunks(this.#linked.catalogue, path, origin);
    if (chunks === null) return sendNote(response, 404, 'no such page');
    void sendSitemap(response, chunks, path.endsWith('.gz'));
  }

  #sendPage(response: ServerResponse, place: Place): void {
    const linked = this.#linked?.render(place.path, place.query) ?? this.#wiki?.render(place.path);
    if (linked !== undefined && linked !== null) return sendHtml({ response }, linked);
    if (place.id === null || !this.#sells(place.id)) return sendNote(response, 404, 'no such page');
    const behaviour: Behaviour | null = this.#rules.take(place.id, place.query.toString());
    const exchange = this.#exchange(response, place);
    if (behaviour) misbehave(exchange, behaviour);
    else exchange.sendPage();
  }

  #sendAsked(response: ServerResponse, place: Place, { id, answer }: ApiRequest): void {
    const behaviour = id !== null && this.#sells(id) ? this.#rules.take(id) : null;
    const sendPage = (): void => {
      const data = id !== null && this.#sells(id) ? dataOf(expectedProduct(this.#settings.seed, id)) : null;
      const { status, json } = answer(data);
      response.writeHead(status, { 'content-type': 'application/json', etag: '"api"' }).end(JSON.stringify(json));
    };
    if (behaviour) misbehave({ ...this.#exchange(response, place), sendPage }, behaviour);
    else sendPage();
  }

  #sells(id: string): boolean {
    const isNumbered = numberOfProduct(id, this.#settings.products) !== null;
    return isNumbered || this.#sold.has(id) || behaviourOfPrefix(id) !== null;
  }

  #exchange(response: ServerResponse, place: Place): Exchange {
    const { seed } = this.#settings;
    const product = expectedProduct(seed, place.id ?? place.path);
    return {
      product,
      path: place.path,
      query: place.query,
      response,
      sendPage: (without = []) => {
        if (!place.path.startsWith('/reviews/'))
          return sendNamed({ response }, renderPage(product, without, this.#linked?.frameOf(product.id)));
        const page = renderReviews(seed, product.id, place.path, Number(place.query.get('page') ?? 1));
        if (page === null) sendNote(response, 404, 'no such page');
        else sendNamed({ response }, page);
      },
      later: (ms, then) => {
        const end = (): void => clearTimeout(timer);
        const timer = setTimeout(() => {
          // A slow response sets hundreds of timers, one after the other.
          response.off('close', end);
          then();
        }, ms);
        response.once('close', end);
      },
    };
  }

  /** Data for scripts; `/api/hang` never answers. */
  #sendData(response: ServerResponse, { path, id }: Place): void {
    if (path === '/api/hang') return;
    if (id === null || !this.#sells(id)) return sendNote(response, 404, 'no such product');
    const product = expectedProduct(this.#settings.seed, id);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...dataOf(product), ...partsOf(renderPage(product)) }));
  }
}

/** A page with only a message. */
export function sendNote(response: ServerResponse, status: number, note: string): void {
  sendHtml({ response }, `<!doctype html><title>${note}</title><h1>${note}</h1>`, status);
}
