/** Which requests are the same: by method, URL and body. */

export interface RequestKey {
  url: string;
  /** Omitted: GET. */
  method?: string | undefined;
  /** Omitted or empty: none. */
  body?: string | undefined;
}

/**
 * Equal for two requests that ask for the same thing. For GET without a body it is the URL itself, without its
 * fragment, which is never sent; otherwise the method, the URL, and 106 bits of hash of the body.
 */
export function requestIdentity({ url, method = 'GET', body = '' }: RequestKey): string {
  const hash = url.indexOf('#');
  const plain = hash === -1 ? url : url.slice(0, hash);
  const verb = method.toUpperCase();
  if (verb === 'GET' && body === '') return plain;
  return body === '' ? `${verb} ${plain}` : `${verb} ${plain} ${hashOf(body, 0)}${hashOf(body, 1)}`;
}

/** 53 bits as 14 hexadecimal digits: cyrb53, two multiplicative hashes that are mixed into each other. */
function hashOf(text: string, seed: number): string {
  let [a, b] = [0xdeadbeef ^ seed, 0x41c6ce57 ^ seed];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 0x9e3779b1);
    b = Math.imul(b ^ code, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return (4_294_967_296 * (2_097_151 & b) + (a >>> 0)).toString(16).padStart(14, '0');
}
