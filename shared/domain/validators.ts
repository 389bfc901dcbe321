/** What a site calls the state of a page (RFC 9110): sent back, it answers 304 while the page is as it was. */
export interface Validators {
  etag?: string;
  /** Last-Modified, as the site has sent it. */
  modified?: string;
}

/** A product's only page: what the next request for it may be conditional on, and what that request may save. */
export interface PageStamp extends Validators {
  /** Of the body, as transferred. */
  bytes: number;
}

/** Results that prove nothing by themselves (404, 304), after which a canary page must show that the site serves the address. */
export const MAX_UNPROVED = 50;

/** At most 256 bytes, and nothing that could end a header. */
export const ETAG = /^(W\/)?"[\x21\x23-\x7e]{0,252}"$/;
export const HTTP_DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;
