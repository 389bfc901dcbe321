/**
 * A product page like the web's median: HTTP Archive counts about one element per 250 bytes of HTML, and most bytes are
 * inline styles, scripts and JSON. The demo shop's page has three and a half times as many elements.
 */
import { escapeHtml } from '../../test/support/shop/page.ts';
import type { ShopProduct } from '../../test/support/shop/languages.ts';

const STYLE = repeat(
  110,
  (i) => `.c-${i}__item{display:flex;margin:${i % 7}px auto;padding:${i % 5}px;color:#2${i % 9}4}`,
);
const SCRIPT = repeat(
  70,
  (i) =>
    `(function(w){w.q=w.q||[];if(w.q.length<${i}&&w.a>1){w.q.push(["module-${i}",function(){return "<i>"}])}})(window);`,
);
const STATE = JSON.stringify(
  Array.from({ length: 75 }, (_, i) => ({
    id: i,
    slug: `related-product-${i}`,
    price: { amount: 100 + i, currency: 'JPY' },
    tags: ['new', 'sale'],
  })),
);
const MENU = repeat(
  22,
  (i) =>
    `<li class="c-${i}__item"><a class="nav-link nav-link--level-1" href="/category/${i}?from=menu&amp;pos=${i}">Department ${i}</a></li>`,
);
const CARDS = repeat(
  12,
  (i) =>
    `<div class="card c-${i}__item" data-position="${i}"><a href="/item/R${i}"><img src="https://img.shop.example/r/${i}/320.webp" width="320" height="320" loading="lazy" alt="Related product ${i}"></a><h3>Related product ${i}</h3><span class="price" data-value="${i}">¥${i}</span></div>`,
);
const REVIEW = `<p>Bought it for the kitchen &amp; like it: 軽くて使いやすい。 The colour is a little darker than in the picture.</p>`;

/** The same fields in the same places as on the demo shop's page. */
export function renderTypicalPage(product: ShopProduct): string {
  const title = escapeHtml(product.title);
  const jsonLd = JSON.stringify({
    '@type': 'Product',
    brand: { name: product.brand },
    aggregateRating: { ratingValue: product.rating.toFixed(1) },
  }).replaceAll('<', '\\u003c');
  return `<!doctype html>
<html lang="ja"><head><meta charset="utf-8"><title>${title}</title><meta name="viewport" content="width=device-width">
<style>${STYLE}</style><script>${SCRIPT}</script><script type="application/ld+json">${jsonLd}</script></head>
<body class="page"><header><a class="logo" href="/">Shop</a><ul class="menu">${MENU}</ul></header>
<nav class="breadcrumbs"><ol><li>Home</li><li>Catalogue</li><li>${escapeHtml(product.category)}</li></ol></nav>
<main><article class="product"><h1 class="title"> ${title} </h1>
<p><span class="price" data-value="${product.price}">¥${product.price}</span></p>
<p class="stock">${product.inStock ? 'In stock' : 'Sold out'}</p><div class="description">${REVIEW.repeat(4)}</div></article>
<section class="related">${CARDS}</section></main>
<script id="state" type="application/json">${STATE}</script><script>${SCRIPT}</script></body></html>
`;
}

function repeat(count: number, part: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => part(i)).join('\n');
}
