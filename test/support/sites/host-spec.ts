/** What a host of the world of host-world.ts is like, and what its pages say. */
import { linkedPage } from '../shop/linked/page-frame.ts';
import { hashText } from '../shop/product.ts';

export interface HostSpec {
  /**
   * Such as `h12.example-1.test`. Below a top-level domain without registrations, such as `.test`, the last two labels
   * are the registrable domain: `example-1.test`.
   */
  name: string;
  /** Pages with a product: their number (`/p/1`, `/p/2` …), or their paths. Default 1. */
  pages?: number | readonly string[];
  /** Default: one that allows everything. */
  robots?: Robots;
  /** Seconds, in the robots.txt that allows everything. */
  crawlDelay?: number;
  /** Default `ok`. */
  behaviour?: HostBehaviour;
  /** An address that is not the world's own, such as `10.0.0.5` or `169.254.169.254`: nothing is started there. */
  address?: string;
  /** The name of an earlier host at whose address this one is. */
  sharesAddressOf?: string;
}

type Robots =
  | { text: string }
  | { status: number }
  /** The request is never answered. */
  | 'silent'
  /** `{port}` is the world's. */
  | { redirectTo: string }
  /** The text, then rules for other robots up to this length. */
  | { bytes: number; text?: string };

/** Of pages; `silent`, `refused`, bans and `tooMany` are true of robots.txt too. */
export type HostBehaviour =
  | 'ok'
  /** Connections are accepted, and requests never answered. */
  | 'silent'
  /** Nothing listens at its address, which it shares with no other host. */
  | 'refused'
  /** Neither the hosts file nor the name server knows the name. */
  | 'nxdomain'
  /** 403 for a while, once an address has asked for this many pages; then it counts again. */
  | { ban: { afterPages: number; forMs: number } }
  /** The same with 429. */
  | { tooMany: { afterPages: number; forMs: number; retryAfterSeconds: number } }
  /** Each page is late by this time. */
  | { slowMs: number }
  /** All pages; `{port}` is the world's, `{path}` that of the request. */
  | { redirectTo: string }
  /** The page, then filler up to this length. */
  | { hugeBytes: number };

/** What can change while the world stands: not where a host is. */
export type HostChange = Pick<HostSpec, 'robots' | 'crawlDelay' | 'pages'> & {
  behaviour?: Exclude<HostBehaviour, 'refused' | 'nxdomain'>;
};

/** The mapping for its pages, in the short form of fleet.yaml. */
export const HOST_MAPPING = {
  fields: {
    title: { css: 'h1', required: true },
    price: { css: '.price', attr: 'data-value', integer: true, required: true },
  },
} as const;

export function pathsOf({ pages = 1 }: HostSpec): readonly string[] {
  return typeof pages === 'number' ? Array.from({ length: pages }, (_, i) => `/p/${i + 1}`) : pages;
}

/** The row that a crawl with HOST_MAPPING must store for a page. */
export function expectedPage(host: string, path: string): { title: string; price: number } {
  const hash = hashText(`${host}${path}`);
  return { title: `Article ${hash.toString(36)} of ${host}`, price: 100 + (hash % 90_000) };
}

export function renderHostPage(host: string, path: string): string {
  const { title, price } = expectedPage(host, path);
  const main = `<article class="product"><p><span class="price" data-value="${price}">€ ${price}</span></p></article>`;
  return linkedPage(title, main, { header: host, footer: 'All prices include tax.' });
}

export function robotsTextOf({ robots, crawlDelay }: HostSpec): string {
  if (typeof robots === 'object' && 'text' in robots && robots.text !== undefined) return robots.text;
  return `User-agent: *\n${crawlDelay === undefined ? '' : `Crawl-delay: ${crawlDelay}\n`}Disallow:\n`;
}
