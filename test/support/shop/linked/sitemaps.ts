/**
 * The linked shop's sitemaps: an index, sitemaps of at most 50,000 products, every other one gzipped, and categories.
 */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { productId } from '../product.ts';
import type { Catalogue } from './catalogue.ts';

const MOST_URLS = 50_000;
const URLS_PER_CHUNK = 500;
const START = '<?xml version="1.0" encoding="UTF-8"?>\n';
const NAMESPACES =
  'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"';

/** robots.txt with both `Sitemap:` lines; the index also names the categories. */
export function robotsWithSitemaps(origin: string): string {
  return `User-agent: *\nDisallow: /cart\n\nSitemap: ${origin}/sitemap.xml\nsitemap: ${origin}/sitemap-categories.xml\n`;
}

/** Two or more sitemaps of products, so that small shops have a gzipped one, too. */
export function itemSitemaps(catalogue: Catalogue): string[] {
  const files = Math.ceil(catalogue.count / urlsPerFile(catalogue));
  return Array.from({ length: files }, (_, i) => `/sitemap-items-${i + 1}.xml${i % 2 === 1 ? '.gz' : ''}`);
}

/** The file's text in chunks; null: there is no such sitemap. A gzipped one is not yet compressed. */
export function sitemapChunks(catalogue: Catalogue, path: string, origin: string): Iterable<string> | null {
  const items = itemSitemaps(catalogue);
  if (path === '/sitemap.xml') return [index([...items, '/sitemap-categories.xml'], origin)];
  if (path === '/sitemap-categories.xml') return [categories(catalogue, origin)];
  const file = items.indexOf(path);
  return file < 0 ? null : itemChunks(catalogue, file * urlsPerFile(catalogue) + 1, origin);
}

/** Streams the sitemap. A client that disconnects ends it. */
export async function sendSitemap(response: ServerResponse, chunks: Iterable<string>, gzipped: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': gzipped ? 'application/gzip' : 'application/xml' });
  const source = Readable.from(chunks);
  const sent = gzipped ? pipeline(source, createGzip(), response) : pipeline(source, response);
  await sent.catch(() => response.destroy());
}

const urlsPerFile = (catalogue: Catalogue): number => Math.min(MOST_URLS, Math.ceil(catalogue.count / 2));

function index(paths: readonly string[], origin: string): string {
  const entries = paths.map((path) => `<sitemap><loc>${origin}${path}</loc><lastmod>2026-11-01</lastmod></sitemap>\n`);
  return `${START}<sitemapindex ${NAMESPACES}>\n${entries.join('')}</sitemapindex>\n`;
}

function categories(catalogue: Catalogue, origin: string): string {
  const entries = Array.from(
    { length: catalogue.categories },
    (_, i) => `<url><loc>${origin}/category/${i}</loc></url>\n`,
  );
  return `${START}<urlset ${NAMESPACES}>\n${entries.join('')}</urlset>\n`;
}

function* itemChunks(catalogue: Catalogue, first: number, origin: string): Generator<string> {
  const end = Math.min(first + urlsPerFile(catalogue), catalogue.count + 1);
  yield `${START}<urlset ${NAMESPACES}>\n`;
  for (let from = first; from < end; from += URLS_PER_CHUNK) {
    const entries = Array.from({ length: Math.min(URLS_PER_CHUNK, end - from) }, (_, i) => {
      const image = `<image:image><image:loc>${origin}/img/${from + i}.jpg</image:loc></image:image>`;
      return `<url><loc>${origin}/item/${productId(from + i)}</loc><lastmod>${catalogue.lastModified(from + i)}</lastmod>${image}</url>\n`;
    });
    yield entries.join('');
  }
  yield '</urlset>\n';
}
