/** The validators of a page (RFC 9110): a site answers 304 to a request with them while the page is unchanged. */
export interface Validators {
  etag?: string;
  /** Last-Modified, as the site sent it. */
  modified?: string;
}

/** The validators of a product's only page for the next request, and the bytes that a 304 to it saves. */
export interface PageStamp extends Validators {
  /** The size of the body as transferred. */
  bytes: number;
}

/** Number of unproved results (404, 304) after which a canary page must show that the site serves the address. */
export const MAX_UNPROVED = 50;

/** What an ETag may be: at most 256 bytes, and nothing that could end a header. */
export const ETAG = /^(W\/)?"[\x21\x23-\x7e]{0,252}"$/;
export const HTTP_DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;
