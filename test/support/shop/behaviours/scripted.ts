/** Pages whose fields are built by a script, which only a browser runs. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import { type Answers, sendHtml } from './behaviour.ts';

export const scriptedShapes = [
  /** An inline script inserts the product after `ms`. */
  z.strictObject({ type: z.literal('script-built'), ms: z.int().min(0).default(50) }),
  /** A script fetches the product from `/api/item/:id` and inserts it. */
  z.strictObject({ type: z.literal('fetch-built') }),
  /** All fields are there, together with pictures, fonts and films that a crawler does not need. */
  z.strictObject({ type: z.literal('with-assets') }),
  /** All fields are there, and a script after them never arrives: the load event never fires. */
  z.strictObject({ type: z.literal('never-loaded') }),
] as const;

export const scriptedAnswers: Answers<z.output<(typeof scriptedShapes)[number]>> = {
  'script-built'(exchange, { ms }) {
    const parts = forScript(partsOf(renderPage(exchange.product)));
    sendHtml(exchange, shell(`const parts=${parts};setTimeout(()=>show(parts),${ms});`));
  },
  'fetch-built'(exchange) {
    const url = forScript(`/api/item/${encodeURIComponent(exchange.product.id)}`);
    sendHtml(exchange, shell(`fetch(${url}).then(r=>r.json()).then(show);`));
  },
  'with-assets'(exchange) {
    const page = renderPage(exchange.product).replace('</head>', `${ASSETS_HEAD}</head>`);
    sendHtml(exchange, page.replace('<main>', `${ASSETS}<main>`));
  },
  'never-loaded'(exchange) {
    const script = '</main>\n<script async src="/api/hang"></script>\n';
    sendHtml(exchange, renderPage(exchange.product).replace('</main>', script));
  },
};

/** The data from which a script builds the product's page. */
export interface PageParts {
  crumbs: string;
  main: string;
  jsonLd: string;
}

/** The parts of a rendered page that hold the fields. */
export function partsOf(page: string): PageParts {
  const between = (start: string, end: string): string => {
    const from = page.indexOf(start) + start.length;
    return page.slice(from, page.indexOf(end, from));
  };
  return {
    crumbs: between('<nav class="breadcrumbs">', '</nav>'),
    main: between('<main>', '</main>'),
    jsonLd: between('<script type="application/ld+json">', '</script>'),
  };
}

/** A value as a script literal, escaped so that no HTML parser can take it for markup. */
function forScript(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}

function shell(script: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Demo Shop</title><link rel="icon" href="data:,"></head>
<body><header><a href="/">Demo Shop</a></header><div id="app"><p>Loading&hellip;</p></div>
<script>
function show(parts){
  const data=document.createElement('script');data.type='application/ld+json';data.textContent=parts.jsonLd;
  document.head.append(data);
  document.getElementById('app').innerHTML='<nav class="breadcrumbs">'+parts.crumbs+'</nav><main>'+parts.main+'</main>';
}
${script}
</script></body></html>\n`;
}

const ASSETS_HEAD = `<style>@font-face{font-family:shop;src:url(/font/shop.woff2) format("woff2")}
body{font-family:shop,sans-serif;background-image:url(/img/background.png)}</style>\n`;
const ASSETS = `<img src="/img/first.jpg" width="10" height="10"><img src="/img/second.webp" width="10" height="10">
<picture><source srcset="/img/third.avif" type="image/avif"><img src="/img/third.png" width="10" height="10"></picture>
<video src="/media/film.mp4" autoplay muted></video><audio src="/media/sound.mp3" autoplay></audio>\n`;
