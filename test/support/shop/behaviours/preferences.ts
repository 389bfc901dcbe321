/** Answers that depend on what the visitor sends: a language, a currency, a header that comes back. */
import { z } from 'zod';
import type { ShopProduct } from '../languages.ts';
import { renderPage } from '../page.ts';
import { type Answers, sendHtml } from './behaviour.ts';

export const preferenceShapes = [
  /** The page in the language and the currency that the visitor prefers, by cookie or by header. */
  z.strictObject({ type: z.literal('localized') }),
  /**
   * Leads to an address that repeats a header, there to a page that repeats it in its head and body; or to a refusal of
   * that kind.
   */
  z.strictObject({ type: z.literal('repeats'), header: z.string(), refuses: z.boolean().default(false) }),
] as const;

/** The word for "product" in the six languages of the shop. */
const WORDS = { en: 'product', de: 'Artikel', fr: 'article', es: 'producto', it: 'prodotto', ja: '商品' } as const;
export const SHOP_LANGUAGES = Object.keys(WORDS) as (keyof typeof WORDS)[];
/** Yen for one unit. */
const RATES = { JPY: 1, EUR: 160, USD: 150 } as const;

const isKey = <T extends object>(table: T, key: string): key is string & keyof T => Object.hasOwn(table, key);

/** The product as the shop shows it to a visitor who asks for this; English and yen without a wish. */
export function localized(product: ShopProduct, language = '', currency = ''): ShopProduct {
  const word = WORDS[isKey(WORDS, language) ? language : 'en'];
  const rate = RATES[isKey(RATES, currency) ? currency : 'JPY'];
  return { ...product, title: `${word}: ${product.title}`, price: Math.ceil(product.price / rate) };
}

export const preferenceAnswers: Answers<z.output<(typeof preferenceShapes)[number]>> = {
  localized(exchange) {
    const { headers } = exchange.response.req;
    const cookies = new Map((headers.cookie ?? '').split('; ').map((one) => one.split('=') as [string, string]));
    const language = cookies.get('language') ?? headers['accept-language']?.slice(0, 2) ?? '';
    const currency = (headers['x-currency'] as string | undefined) ?? cookies.get('currency');
    // As shops do: the next visit would be in the default currency again.
    exchange.response.setHeader('set-cookie', ['currency=JPY; Path=/', 'visit=1; Path=/']);
    const page = renderPage(localized(exchange.product, language, currency));
    sendHtml(exchange, page.replace('lang="ja"', `lang="${isKey(WORDS, language) ? language : 'en'}"`));
  },
  repeats(exchange, { header, refuses }) {
    const { response, path, query, product } = exchange;
    const value = String(response.req.headers[header] ?? 'nothing');
    if (!query.has('key')) {
      const to = `${path}?key=${encodeURIComponent(value)}`;
      return void response.writeHead(302, { location: to, 'set-cookie': `key=${value}` }).end(`to ${to}`);
    }
    response.setHeader('x-seen', value);
    const page = renderPage(product).replace('</head>', `<meta name="key" content="${value}"></head>`);
    sendHtml(exchange, refuses ? `<title>refused</title><p>${value}</p>` : page, refuses ? 403 : 200);
  },
};
