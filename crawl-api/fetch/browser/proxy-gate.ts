/**
 * The gate of the filter proxy: open for one product at a time. Between two products nothing of the last page can reach
 * the site, and the first request for the next page is the moment from which the pace counts.
 */
import { bareHostOf, portOf } from '../../../shared/domain/same-site.ts';
import type { FetchHooks } from '../page-result.ts';

/** The traffic of one product. */
export interface GateReport {
  /** Requests and tunnels let through. Requests inside a tunnel are invisible. */
  requests: number;
  /** Bytes of replies. */
  receivedBytes: number;
  /** Why a request was refused or failed, by host and port. */
  faults: ReadonlyMap<string, string>;
  /** The error that `onStart` threw. */
  startError: { thrown: unknown } | null;
}

/** Maximum hosts that are remembered: a page may try as many as it likes. */
const MAX_FAULTS = 100;

/** Maximum requests of one product, for the page and everything it loads. */
const MAX_REQUESTS = 200;
/** Maximum of those for documents: pages, frames, windows. */
const MAX_DOCUMENTS = 20;

/** The request that a product begins with. */
export interface FirstRequest {
  authority: string;
  path: string;
}

interface Product extends GateReport {
  first: FirstRequest;
  hooks: FetchHooks;
  maxBytes: number;
  onePort: boolean;
  started: boolean;
  answered: boolean;
  documents: number;
  /** The product has loaded more than any page needs: nothing more goes through. */
  exhausted: boolean;
  faults: Map<string, string>;
}

export class ProxyGate {
  #product: Product | null = null;

  /**
   * Lets one product's traffic through, from the request for its page on; replies are cut off at `maxBytes`.
   * @param onePort the host of the page gets no request at another port: a browser would send its cookies there, too
   */
  open(first: FirstRequest, hooks: FetchHooks, maxBytes: number, onePort = false): GateReport {
    const limits = { first, hooks, maxBytes, onePort, started: false, answered: false, documents: 0, exhausted: false };
    this.#product = { ...limits, requests: 0, receivedBytes: 0, faults: new Map(), startError: null };
    return this.#product;
  }

  /** Nothing goes through until the next `open`. */
  shut(): void {
    this.#product = null;
  }

  /** The product whose traffic is let through; null when there is none. */
  get report(): GateReport | null {
    return this.#product;
  }

  /**
   * True when a request may be made; before the page's own request, no other may.
   * @param path null where it is invisible, in a tunnel
   * @param isDocument it is for a page, a frame or a window; false where that is invisible
   */
  admits(authority: string, path: string | null, isDocument = false): boolean {
    const product = this.#product;
    if (product === null || product.exhausted || product.startError !== null) return false;
    const { first, onePort } = product;
    if (onePort && first.authority !== authority && hostOf(first.authority) === hostOf(authority)) return false;
    if (product.started) return product.requests < MAX_REQUESTS && (!isDocument || product.documents < MAX_DOCUMENTS);
    // Chromium switches to TLS on its own once the site has sent HSTS.
    if (path === null) return hostOf(first.authority) === hostOf(authority);
    return first.authority === authority && isSamePath(first.path, path);
  }

  /** False: do not write the head. `asked`: the product that it was admitted for, which may be over by now. */
  start(asked: GateReport | null = this.report): boolean {
    const product = this.#product;
    if (product === null || product !== asked || product.startError !== null) return false;
    if (product.started) return true;
    try {
      product.hooks.onStart();
      product.started = true;
      return true;
    } catch (thrown) {
      product.startError = { thrown };
      return false;
    }
  }

  /** Counts bytes of a reply. False: close the connection. `asked` as for `start`. */
  receive(bytes: number, asked: GateReport | null = this.report): boolean {
    const product = this.#product;
    if (product === null || product !== asked) return false;
    if (product.started && !product.answered) {
      product.answered = true;
      product.hooks.onFirstByte();
    }
    product.receivedBytes += bytes;
    return !product.exhausted && product.receivedBytes <= product.maxBytes;
  }

  /** Nothing more goes through for this product, not even on open connections. */
  exhaust(): void {
    if (this.#product) this.#product.exhausted = true;
  }

  countRequest(isDocument = false): void {
    if (this.#product === null) return;
    this.#product.requests++;
    if (isDocument) this.#product.documents++;
  }

  fault(authority: string, reason: string): void {
    const faults = this.#product?.faults;
    if (faults && faults.size < MAX_FAULTS) faults.set(authority, reason);
  }
}

const hostOf = (authority: string): string => authority.slice(0, authority.lastIndexOf(':'));

/** Browsers differ in which characters they write as `%xx`. */
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

/** The request as the proxy sees it; null for what is no http or https URL. */
export function firstRequestOf(url: string): FirstRequest | null {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return null;
  const target = new URL(url);
  return { authority: `${bareHostOf(target)}:${portOf(target)}`, path: target.pathname + target.search };
}

/** True when a browser sent to the one URL may request the other: it switches to TLS once the site has sent HSTS. */
export function isSameRequest(url: string, other: string): boolean {
  const [a, b] = [firstRequestOf(url), firstRequestOf(other)];
  return a !== null && b !== null && hostOf(a.authority) === hostOf(b.authority) && isSamePath(a.path, b.path);
}
