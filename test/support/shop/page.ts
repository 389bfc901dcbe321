/** The page of a product: about 40 KB, built like a real shop's page, with the same bytes each time. */
import { seededRandom } from '../../../shared/adapters/random.ts';
import type { ShopProduct } from './languages.ts';

/** A part of the page that a misbehaving shop leaves out. */
export type PageField = 'title' | 'price' | 'json-ld';

/** What surrounds the product; all but `catalogue` is HTML. */
export interface PageFrame {
  /** The rest of the head, and its end. */
  head: string;
  bodyStart: string;
  /** Where the breadcrumb leads. */
  catalogue: string;
  below: string;
  footer: string;
}

/** The whole page, without the fields in `without`. */
export function renderPage(product: ShopProduct, without: readonly PageField[] = [], frame = PLAIN_FRAME): string {
  const title = escapeHtml(product.title);
  return [
    `<!doctype html>\n<html lang="ja">\n<head>\n<meta charset="utf-8">\n<title>${title} - Demo Shop</title>\n`,
    frame.head,
    without.includes('json-ld') ? '' : `<script type="application/ld+json">${jsonLd(product)}</script>\n`,
    frame.bodyStart,
    `<nav class="breadcrumbs"><ol><li><a href="/">Home</a></li><li><a href="${frame.catalogue}">Catalogue</a></li><li>${escapeHtml(product.category)}</li></ol></nav>\n`,
    `<main>\n<article class="product" data-id="${escapeHtml(product.id)}">\n`,
    without.includes('title') ? '' : `<h1 class="title">\n  ${title}\n</h1>\n`,
    without.includes('price')
      ? ''
      : `<p><span class="price" data-value="${product.price}">¥${groupDigits(product.price)}</span> <small>tax included</small></p>\n`,
    `<p class="stock">${product.inStock ? 'In stock' : 'Sold out'}</p><p class="sku">${product.sku}</p>\n`,
    `<p class="brand">by <a href="/b">${escapeHtml(product.brand)}</a></p>\n`,
    `<div class="description"><p>${escapeHtml(product.description)}</p></div>\n</article>\n`,
    frame.below,
    `</main>\n<footer>${frame.footer}</footer>\n</body>\n</html>\n`,
  ].join('');
}

function jsonLd(product: ShopProduct): string {
  const value = {
    '@context': 'https://schema.org',
    '@type': 'Product',
    name: product.title,
    sku: product.sku,
    brand: { '@type': 'Brand', name: product.brand },
    offers: {
      '@type': 'Offer',
      price: product.price,
      priceCurrency: 'JPY',
      availability: `https://schema.org/${product.inStock ? 'InStock' : 'OutOfStock'}`,
    },
    aggregateRating: {
      '@type': 'AggregateRating',
      ratingValue: product.rating.toFixed(1),
      reviewCount: product.reviewCount,
    },
  };
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function groupDigits(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

// Everything below is the same on every page and built once: the shop measures arrivals, and a slow page build would
// delay the next arrival and falsify its time.

const WORDS =
  'light dark paper river stone 便利 quiet open 毎日 strong soft winter 春 small round simple careful warm 手作り bright'.split(
    ' ',
  );

function words(random: { next(): number }, count: number): string {
  return Array.from({ length: count }, () => WORDS[Math.floor(random.next() * WORDS.length)]!).join(' ');
}

const HEAD = (() => {
  const rules = Array.from(
    { length: 70 },
    (_, i) =>
      `.u${i}{margin:${i % 9}px ${i % 5}px;padding:${i % 7}px;color:#${(0x10101 * (i + 40)).toString(16).slice(-6)}}`,
  );
  const setup = Array.from({ length: 40 }, (_, i) => `window.shop.push({k:${i},on:"click",to:"<b>${i}</b>"});`);
  return `<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>\n${rules.join('\n')}\n</style>
<script>window.shop=[];\n${setup.join('\n')}\nif(1<2&&3>2){document.title+="";}</script>\n</head>\n`;
})();

const BODY_START = `<body class="page">\n<header><a class="logo" href="/">Demo Shop</a><form action="/s"><input name="q" placeholder="Search&hellip;"></form>
<ul class="menu">${Array.from({ length: 24 }, (_, i) => `<li class="u${i}"><a href="/c/${i}">Department ${i}</a></li>`).join('')}</ul></header>\n`;

const COMMON = (() => {
  const random = seededRandom(42);
  const reviews = Array.from({ length: 60 }, (_, i) => {
    const stars = 1 + Math.floor(random.next() * 5);
    return `<li class="review" data-user="u${1000 + i}"><h3>${words(random, 4)}</h3><span class="stars s${stars}" title="${stars} of 5">${'★'.repeat(stars)}</span><p>${words(random, 22)} &amp; ${words(random, 18)}.</p><time datetime="2026-0${1 + (i % 9)}-11">11.0${1 + (i % 9)}.2026</time></li>`;
  });
  const related = Array.from(
    { length: 24 },
    (_, i) =>
      `<div class="card u${i}"><a href="/related/${i}"><img src="/img/${i}.jpg" alt="${words(random, 3)}" width="160" height="160" loading="lazy"></a><h3>${words(random, 4)}</h3><span class="price" data-value="${1000 + i}">¥1,${String(i).padStart(3, '0')}</span></div>`,
  );
  return `<section class="reviews"><h2>Reviews</h2><ul>\n${reviews.join('\n')}\n</ul></section>
<section class="related"><h2>Related</h2>\n${related.join('\n')}\n</section>\n`;
})();

const PLAIN_FRAME: PageFrame = {
  head: HEAD,
  bodyStart: BODY_START,
  catalogue: '/c',
  below: COMMON,
  footer: '<p>&copy; Demo Shop. All prices in yen.</p>',
};
