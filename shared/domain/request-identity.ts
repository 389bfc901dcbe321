/** What makes two requests the same one. */

export interface RequestKey {
  url: string;
  /** Omitted: GET. */
  method?: string;
  /** Hash of the body; omitted: there is none. */
  bodyHash?: string;
}

/**
 * Equal for two requests that ask for the same page. Of a GET without a body it is the URL itself, without its
 * fragment, which is never sent; otherwise `POST https://shop.example/graphql sha256:…`.
 */
export function requestIdentity({ url, method = 'GET', bodyHash }: RequestKey): string {
  const hash = url.indexOf('#');
  const plain = hash === -1 ? url : url.slice(0, hash);
  if (method === 'GET' && bodyHash === undefined) return plain;
  return `${method} ${plain}${bodyHash === undefined ? '' : ` sha256:${bodyHash}`}`;
}
