/**
 * Ordinary shop pages in the styles of common frameworks, with heads of any size; no ban rule may match them. Each
 * style contains what real shops have: inline styles, and scripts that set cookies, change `location` or name a
 * captcha.
 */

export interface OrdinaryPage {
  style: string;
  /** Characters before the body. */
  headChars: number;
  html: string;
}

export interface PageOptions {
  /** Least length of the head. */
  headChars: number;
  /** Default: none. */
  price?: string;
}

const TEXT = 'A sturdy canvas bag for daily use, with leather straps, a zip and a pocket for small things. '.repeat(24);
const LD = JSON.stringify({ '@type': 'Product', name: 'Canvas bag', sku: 'P1' });

const css = (i: number): string => `.c${i}{color:#333;margin:${i % 9}px}.c${i}:hover{color:red}`;
const json = (i: number): string => `"k${i}":{"id":${i},"text":"Canvas bag, medium, ${i}"},`;
const code = (i: number): string => `function f${i}(a){if(a){window.x${i}=a;return a+${i}}document.title=a;}`;

/** Pieces of one kind up to this length. */
function fill(piece: (i: number) => string, chars: number): string {
  const parts: string[] = [];
  for (let length = 0, i = 0; length < chars; i++) {
    const part = piece(i);
    parts.push(part);
    length += part.length;
  }
  return parts.join('');
}

const main = ({ price }: PageOptions): string =>
  `<main><h1>Canvas bag</h1>${price === undefined ? '<p class="sold-out">Sold out</p>' : `<span class="price">${price}</span>`}<p>${TEXT}</p></main>`;

const document = (head: string, body: string, html = ''): string =>
  `<!doctype html><html lang="en"${html}><head><meta charset="utf-8"><title>Canvas bag | Example shop</title>${head}</head><body>${body}</body></html>`;

type Style = (options: PageOptions) => string;

const STYLES: Readonly<Record<string, Style>> = {
  'next.js': (o) =>
    document(
      `<style data-emotion="css">${fill(css, o.headChars)}</style><script>(function(){var t=document.cookie.match(/theme=(\\w+)/);document.cookie="seen=1;path=/";})()</script>`,
      `<div id="__next">${main(o)}</div><script id="__NEXT_DATA__" type="application/json">{${fill(json, 40_000)}"end":1}</script><script src="/_next/static/main.js" async></script>`,
    ),
  nuxt: (o) =>
    document(
      `<script>window.__NUXT__=(function(a){return {${fill(json, o.headChars)}"end":a}})(1);if(/old/.test(location.hash))location.replace("/");</script>`,
      `<div id="__nuxt">${main(o)}</div><script src="/_nuxt/app.js" defer></script>`,
    ),
  shopify: (o) =>
    document(
      `<script>window.Shopify=window.Shopify||{};Shopify.checkout=function(){location.href="/checkout"};document.cookie="cart_sig=;path=/";</script><script>${fill(code, o.headChars)}</script><script src="https://www.google.com/recaptcha/api.js" async></script>`,
      `<header><form action="/account/login" method="post"><input type="email" name="e"><input type="password" name="p"><button>Log in</button></form></header>${main(o)}<div class="g-recaptcha" data-size="invisible"></div>`,
    ),
  amp: (o) =>
    document(
      `<style amp-boilerplate>body{animation:-amp-start 8s}</style><noscript><style amp-boilerplate>body{animation:none}</style><meta http-equiv="refresh" content="0; url=/noscript"></noscript><style amp-custom>${fill(css, o.headChars)}</style><script async src="https://cdn.ampproject.org/v0.js"></script>`,
      main(o),
      ' amp',
    ),
  'critical css': (o) => document(`<style>${fill(css, o.headChars)}</style>`, main(o)),
  'tag manager': (o) =>
    document(
      `<script>${fill(code, o.headChars)}(function(w,l){w[l]=w[l]||[];if(!navigator.cookieEnabled)location.assign("/no-cookies")})(window,"dataLayer")</script>`,
      `<noscript><iframe src="https://tags.example/ns.html"></iframe></noscript>${main(o)}<script>document.forms[0]&&document.forms[0].submit</script>`,
    ),
  'single page app': (o) =>
    document(
      `<link rel="stylesheet" href="/app.css"><style>${fill(css, o.headChars)}</style><script type="application/ld+json">${LD}</script><script>window.location.hostname==="m.shop.example"&&(document.cookie="m=1")</script>`,
      `<div id="root">${main(o)}</div><script type="module" src="/app.js"></script>`,
    ),
  comments: (o) => document(`<!-- ${fill((i) => `build ${i} `, o.headChars)} -->`, main(o)),
  'one long attribute': (o) => document('', `<div data-state='${fill(json, o.headChars)}'>${main(o)}</div>`),
};

const HEAD_CHARS = [0, 3_000, 20_000, 60_000, 65_000, 66_000, 90_000, 150_000, 300_000] as const;

/** Every style combined with every head size. */
export function ordinaryPages(options: Omit<PageOptions, 'headChars'> = {}): OrdinaryPage[] {
  return Object.entries(STYLES).flatMap(([style, build]) =>
    HEAD_CHARS.map((headChars) => ({ style, headChars, html: build({ ...options, headChars }) })),
  );
}
