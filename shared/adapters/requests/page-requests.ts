/** How each page is requested: by GET, or as `site.request` or a section of the mapping says. */
import { createHash } from 'node:crypto';
import type { RequestTemplate } from '../../domain/request-template.ts';
import type { PageMapping } from '../../domain/mapping.ts';
import { fillBody } from './request-body.ts';
import { requestIdentity } from '../../domain/request-identity.ts';
import { indexSections } from '../../domain/url-patterns.ts';

/** What a POST request sends. */
export interface PostBody {
  body: string;
  /** Omitted where the body is empty. */
  contentType?: string;
}

/** One request; without `post` it is a GET. */
export interface PageRequest {
  url: string;
  post?: PostBody;
}

export const identityOf = ({ url, post }: PageRequest): string =>
  requestIdentity(post === undefined ? { url } : { url, method: 'POST', bodyHash: hashOf(post.body) });

/** 128 bits: no two bodies of a run have the same. */
const hashOf = (body: string): string => createHash('sha256').update(body).digest('hex').slice(0, 32);

/** What the requests of a site are made from. */
interface RequestSettings {
  site: { request?: RequestTemplate };
  mapping: { pages: readonly Pick<PageMapping, 'urlPatterns' | 'request'>[] };
}

/** True when a section of the mapping has a request of its own, so that its URL patterns count for requests. */
export const hasSectionRequests = ({ pages }: RequestSettings['mapping']): boolean =>
  pages.some(({ request }) => request !== undefined);

/** True when some page is requested by POST. */
export const asksByPost = ({ site, mapping }: RequestSettings): boolean =>
  [site, ...mapping.pages].some(({ request }) => request?.method === 'POST');

export class PageRequests {
  readonly #own: RequestTemplate | undefined;
  /** The section that reads a page. */
  readonly #sectionOf: (url: string) => Pick<PageMapping, 'request'> | null;

  /** @param compile called for the URL patterns of the mapping, if a section has a request of its own */
  constructor({ site, mapping }: RequestSettings, compile: Parameters<typeof indexSections>[1]) {
    this.#own = site.request;
    const sections = mapping.pages.map((value) => ({ value, patterns: value.urlPatterns }));
    this.#sectionOf = hasSectionRequests(mapping) ? indexSections(sections, compile) : () => null;
  }

  /** The request for a product's own page. */
  ofProduct(url: string, id: string): PageRequest {
    return filled(url, this.templateOf(url), id);
  }

  /** The request for a link of a product's page. `site.request` is for the product alone. */
  ofLink(url: string, id: string): PageRequest {
    return filled(url, this.#sectionOf(url)?.request, id);
  }

  /** How a product with this URL is requested; undefined: by GET. */
  templateOf(url: string): RequestTemplate | undefined {
    return this.#sectionOf(url)?.request ?? this.#own;
  }
}

function filled(url: string, template: RequestTemplate | undefined, id: string): PageRequest {
  if (template?.method !== 'POST') return { url };
  const { contentType } = template;
  return { url, post: { body: fillBody(template, id), ...(contentType === undefined ? {} : { contentType }) } };
}
