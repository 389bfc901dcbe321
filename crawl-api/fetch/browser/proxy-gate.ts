/**
 * The gate of the filter proxy: open for one product at a time. Between two products nothing of the last page can reach the
 * site, and the first request for the next page is the moment that politeness counts from.
 */
import { portOf } from '../../../shared/adapters/http/address-guard.ts';
import type { FetchHooks } from '../page-result.ts';

/** What became of the traffic of one product. */
export interface GateReport {
  /** Requests and tunnels let through. Requests inside a tunnel cannot be seen. */
  requests: number;
  /** Bytes of replies. */
  receivedBytes: number;
  /** Why a request was refused or failed, by host and port. */
  faults: ReadonlyMap<string, string>;
  /** What `onStart` threw. */
  startError: { thrown: unknown } | null;
}

/** More hosts than this are not remembered: a page may try as many as it likes. */
const MAX_FAULTS = 100;

/** Of one product, for the page and all it loads. */
const MAX_REQUESTS = 200;
/** Of those, for documents: pages, frames, windows. */
const MAX_DOCUMENTS = 20;

/** The page that a product begins with. */
export interface FirstRequest {
  /** Host and port, `host:port`. */
  authority: string;
  /** Path and query. */
  path: string;
}

interface Product {
  first: FirstRequest;
  hooks: FetchHooks;
  maxBytes: number;
  started: boolean;
  answered: boolean;
  documents: number;
  /** It has loaded more than any page needs: nothing more goes through. */
  exhausted: boolean;
  report: GateReport & { faults: Map<string, string> };
}

export class ProxyGate {
  #product: Product | null = null;

  /**
   * Lets the traffic of one product through, beginning with the request for its page.
   * @param maxBytes of replies; what comes beyond is cut off
   */
  open(first: FirstRequest, hooks: FetchHooks, maxBytes: number): GateReport {
    const report = { requests: 0, receivedBytes: 0, faults: new Map<string, string>(), startError: null };
    this.#product = { first, hooks, maxBytes, started: false, answered: false, documents: 0, exhausted: false, report };
    return report;
  }

  /** Nothing goes through until the next `open`. */
  shut(): void {
    this.#product = null;
  }

  /** Of the product whose traffic is let through; null when there is none. */
  get report(): GateReport | null {
    return this.#product?.report ?? null;
  }

  /**
   * True when a request may be made; before the page's own request, no other may.
   * @param path null where it cannot be seen, in a tunnel
   * @param isDocument it is for a page, a frame or a window; false where that cannot be seen
   */
  admits(authority: string, path: string | null, isDocument = false): boolean {
    const product = this.#product;
    if (product === null || product.exhausted || product.report.startError !== null) return false;
    if (product.started)
      return product.report.requests < MAX_REQUESTS && (!isDocument || product.documents < MAX_DOCUMENTS);
    const { first } = product;
    // Chromium goes over to TLS by itself where the site has asked for that once.
    if (path === null) return hostOf(first.authority) === hostOf(authority);
    return first.authority === authority && isSamePath(first.path, path);
  }

  /**
   * Call as the head is about to be written. False: do not write it.
   * @param asked the product that the request was admitted for, where that is known: it may be over by now
   */
  start(asked: GateReport | null = this.report): boolean {
    const product = this.#product;
    if (product === null || product.report !== asked || product.report.startError !== null) return false;
    if (product.started) return true;
    try {
      product.hooks.onStart();
      product.started = true;
      return true;
    } catch (thrown) {
      product.report.startError = { thrown };
      return false;
    }
  }

  /** Counts bytes of a reply. False: cut the connection. `asked` as for `start`. */
  receive(bytes: number, asked: GateReport | null = this.report): boolean {
    const product = this.#product;
    if (product === null || product.report !== asked) return false;
    if (product.started && !product.answered) {
      product.answered = true;
      product.hooks.onFirstByte();
    }
    product.report.receivedBytes += bytes;
    return !product.exhausted && product.report.receivedBytes <= product.maxBytes;
  }

  /** Nothing more goes through for this product, also not on connections that are open. */
  exhaust(): void {
    if (this.#product) this.#product.exhausted = true;
  }

  countRequest(isDocument = false): void {
    if (this.#product === null) return;
    this.#product.report.requests++;
    if (isDocument) this.#product.documents++;
  }

  fault(authority: string, reason: string): void {
    const faults = this.#product?.report.faults;
    if (faults && faults.size < MAX_FAULTS) faults.set(authority, reason);
  }
}

const hostOf = (authority: string): string => authority.slice(0, authority.lastIndexOf(':'));

/** Browsers do not all write the same characters as `%xx`. */
function isSamePath(a: string, b: string): boolean {
  return a === b || decode(a) === decode(b);
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** As the proxy sees it; null for what is no http or https URL. */
export function firstRequestOf(url: string): FirstRequest | null {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return null;
  const { protocol, hostname, port, pathname, search } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  return { authority: `${host}:${portOf(protocol, port)}`, path: pathname + search };
}

/** True when a browser may ask for the one when told to go to the other; it goes over to TLS where the site has asked for that once. */
export function isSameRequest(url: string, other: string): boolean {
  const [a, b] = [firstRequestOf(url), firstRequestOf(other)];
  return a !== null && b !== null && hostOf(a.authority) === hostOf(b.authority) && isSamePath(a.path, b.path);
}
