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
  /** What each of them links to: paths, or URLs in which `{port}` is the world's. */
  links?: readonly string[];
  /** Pages that say how to reach the host, by path, with what each of them says. */
  contacts?: Readonly<Record<string, readonly ContactField[]>>;
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
  /** 503 to the first `refuses` requests. `drips`: then a line now and then, without an end. */
  | { text: string; refuses?: number; drips?: true }
  | { status: number }
  /** The request is never answered. */
  | 'silent'
  /** `{port}` is the world's. */
  | { redirectTo: string }
  /** The text, then rules for other robots up to this length. */
  | { bytes: number; text?: string }
  /** The text, then comments up to this length, packed into a hundredth of it or less. */
  | { bytes: number; text?: string; packed: true };

export type ContactField = 'mail' | 'phone';

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
  | { hugeBytes: number }
  /** All pages: these bytes in place of a reply, then the end of the connection. `{port}` and `{path}` as above. */
  | { raw: string };

/** What can change while the world stands: not where a host is. */
export type HostChange = Pick<HostSpec, 'robots' | 'crawlDelay' | 'pages' | 'links' | 'contacts'> & {
  behaviour?: Exclude<HostBehaviour, 'refused' | 'nxdomain'>;
};

/** The mapping for its pages, in the short form of fleet.yaml. */
export const HOST_MAPPING = {
  fields: {
    title: { css: 'h1', required: true },
    price: { css: '.price', attr: 'data-value', integer: true, required: true },
  },
} as const;

/** The same, completed from the pages that they link to: of `/contact` and `/imprint` any may have a phone. */
export const CONTACT_MAPPING = {
  mappings: [
    {
      url_patterns: ['/p/[0-9]+$'],
      fields: HOST_MAPPING.fields,
      url_parsers: [{ css: '.links a', attr: 'href', all: true }],
    },
    { url_patterns: ['/contact$'], fields: { mail: { css: '.mail' }, phone: { css: '.phone' } } },
    { url_patterns: ['/imprint$'], fields: { phone: { css: '.phone' } } },
  ],
} as const;

export function pathsOf({ pages = 1 }: HostSpec): readonly string[] {
  return typeof pages === 'number' ? Array.from({ length: pages }, (_, i) => `/p/${i + 1}`) : pages;
}

/** The row that a crawl with HOST_MAPPING must store for a page. */
export function expectedPage(host: string, path: string): { title: string; price: number } {
  const hash = hashText(`${host}${path}`);
  return { title: `Article ${hash.toString(36)} of ${host}`, price: 100 + (hash % 90_000) };
}

/** What a page of `contacts` says. */
export function expectedContact(host: string, field: ContactField): string {
  return field === 'mail' ? `office@${host}` : `+49 30 ${hashText(host) % 1_000_000}`;
}

export function renderHostPage(spec: HostSpec, path: string, port: number): string {
  const { name, links = [], contacts = {} } = spec;
  const around = { header: name, footer: 'All prices include tax.' };
  const said = contacts[path];
  if (said !== undefined) {
    const lines = said.map((field) => `<p class="${field}">${expectedContact(name, field)}</p>`);
    return linkedPage(`How to reach ${name}`, lines.join(''), around);
  }
  const { title, price } = expectedPage(name, path);
  const list = links.map((link) => `<a href="${link.replaceAll('{port}', String(port))}">${link}</a>`).join(' ');
  const main = `<article class="product"><p><span class="price" data-value="${price}">€ ${price}</span></p></article>`;
  return linkedPage(title, links.length === 0 ? main : `${main}<p class="links">${list}</p>`, around);
}

export function robotsTextOf({ robots, crawlDelay }: HostSpec): string {
  if (typeof robots === 'object' && 'text' in robots && robots.text !== undefined) return robots.text;
  return `User-agent: *\n${crawlDelay === undefined ? '' : `Crawl-delay: ${crawlDelay}\n`}Disallow:\n`;
}
