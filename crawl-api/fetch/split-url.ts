/** The parts of a page's URL that a request is made of. */

/**
 * The URL's origin and its path; null unless http(s). Not by a URL parser: an ID may be `%2E%2E`, which is a step up
 * the path to it.
 */
export function splitUrl(url: string): { origin: string; path: string } | null {
  const [, host, rest] = /^(https?:\/\/[^/?#]+)([^#]*)/i.exec(url) ?? [];
  if (host === undefined || rest === undefined || !URL.canParse(host)) return null;
  const path = rest.replace(/[^\x21-\x7e]+/g, (text) => encodeURIComponent(text.toWellFormed()));
  return { origin: new URL(host).origin, path: path.startsWith('/') ? path : `/${path}` };
}
