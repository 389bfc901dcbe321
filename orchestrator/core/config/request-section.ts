/** How pages are requested: `site.request`, and `request` of a section of the mapping. */
import type { RequestTemplate } from '../../../shared/domain/request-template.ts';
import { z } from 'zod';
import { compilePattern } from '../../../shared/adapters/steps/regex.ts';
import { hasOwnUrls, type ProductUrl, templatesOf, URL_MARK } from '../../../shared/domain/domains.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { asksByPost, PageRequests } from '../../../shared/adapters/requests/page-requests.ts';
import { fillTemplate, SEGMENTS_MARK } from '../../../shared/domain/product.ts';
import { bodyNamesProduct, kindOfBody } from '../../../shared/adapters/requests/request-body.ts';
import type { MappingFault } from './faults.ts';
import { findBodyFault, findDocumentFault, withSelections } from './request-body-check.ts';
import { text } from './forms.ts';

const MAX_BODY_CHARS = 100_000;

/** Beside the body that it is of: a GET has none. */
const DEFAULT_TYPE = 'application/json';

/** The section, with its defaults. */
export const requestSection = () =>
  z
    .strictObject({
      method: z
        .enum(['GET', 'POST'])
        .default('GET')
        .describe('`POST` only where the URL is a search or a query that changes nothing at the shop.'),
      body: z
        .union([z.string(), z.record(z.string(), z.unknown()), z.array(z.unknown())], {
          error: 'must be a text, or a mapping or a list that is sent as JSON',
        })
        .default('')
        .describe(
          'What a POST sends: a text, or a mapping that is sent as JSON. `{id}` is the product ID, escaped for its place; `{id}` selected in a GraphQL document stays.',
        ),
      content_type: text()
        .default(DEFAULT_TYPE)
        .describe(
          'The type of the body: a kind of JSON, `application/x-www-form-urlencoded`, `application/graphql` or `text/plain`.',
        ),
      reads_only: z
        .boolean()
        .default(false)
        .describe(
          '`true`: you say that these requests only read, so that each may be sent again, as a GET may. POST needs it.',
        ),
    })
    .superRefine((request, context) => {
      for (const { path, message } of faultsOf(request)) context.addIssue({ code: 'custom', path: [...path], message });
    });

type RequestSection = z.output<ReturnType<typeof requestSection>>;

const bodyOf = ({ body }: Pick<RequestSection, 'body'>): string =>
  typeof body === 'string' ? body : JSON.stringify(body);

function faultsOf(request: RequestSection): MappingFault[] {
  const { method, content_type: contentType, reads_only: readsOnly } = request;
  const body = bodyOf(request);
  if (method === 'GET') return body === '' ? [] : [{ path: ['body'], message: 'goes with method: POST' }];
  const faults: MappingFault[] = [];
  if (!readsOnly)
    faults.push({
      path: ['reads_only'],
      message:
        'must be true for POST: by it you say that these requests change nothing at the shop, because a crawl may send each of them again',
    });
  if (body.length > MAX_BODY_CHARS)
    faults.push({ path: ['body'], message: `is longer than ${MAX_BODY_CHARS} characters` });
  else if (body !== '') {
    const message = findBodyFault(body, contentType);
    if (message !== null) faults.push({ path: [kindOfBody(contentType) === null ? 'content_type' : 'body'], message });
  }
  return faults;
}

/** The section as instances have it. */
export function requestOf(section: RequestSection): RequestTemplate {
  if (section.method === 'GET') return { method: 'GET' };
  const body = bodyOf(section);
  if (body === '') return { method: 'POST', body };
  const { content_type: contentType } = section;
  return { method: 'POST', body: withSelections(body, contentType), contentType };
}

/** `site.request` as instances have it; nothing for GET. */
export function requestSettingsOf(section: RequestSection | null): { request?: RequestTemplate } {
  return section === null || section.method === 'GET' ? {} : { request: requestOf(section) };
}

/** Each names a product in a URL. */
const ID_MARKS = ['{id}', SEGMENTS_MARK, URL_MARK];

interface Requested {
  product_url: ProductUrl;
  request: RequestSection | null;
  render: 'http' | 'browser' | 'auto';
}

/** Faults that show only beside the site and its mapping. */
export function findRequestFaults(site: Requested, mapping: Mapping): MappingFault[] {
  const settings = { site: requestSettingsOf(site.request), mapping };
  const requests = new PageRequests(settings, compilePattern);
  if (hasOwnUrls(site.product_url)) {
    const named = [settings.site, ...mapping.pages].some(({ request }) => bodyNamesProduct(request));
    const message = 'go with a request body without {id}: an instance knows a product by its URL';
    if (named) return [{ path: ['site', 'hosts'], message }];
  }
  const urlFaults = templatesOf(site.product_url).flatMap((template, i): MappingFault[] => {
    const path = ['site', 'product_url', ...(typeof site.product_url === 'string' ? [] : [i, 'url'])];
    const url = fillTemplate(template, 'x');
    const document = findDocumentFault(Object.fromEntries(new URL(url).searchParams));
    if (document !== null) return [{ path, message: document }];
    if (ID_MARKS.some((mark) => template.includes(mark)) || bodyNamesProduct(requests.templateOf(url))) return [];
    const message = 'must contain {id}, where the product ID goes';
    return [{ path, message: site.request === null ? message : `${message}; or the body of the request, in quotes` }];
  });
  if (site.render === 'http' || !asksByPost(settings)) return urlFaults;
  return [
    ...urlFaults,
    {
      path: ['site', 'render'],
      message: 'must be http where a page is requested by POST: a browser opens pages by GET',
    },
  ];
}
