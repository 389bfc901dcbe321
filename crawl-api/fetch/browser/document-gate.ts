/**
 * Decides, before they are sent, which documents the browser may ask for. One navigation of the main frame a visit: ours. Where
 * the site redirects it, and where a script, a refresh, a form or a reload leads, is told and not followed: it would be a request for a page
 * outside the pace, as many times as the page likes. Over TLS the proxy cannot see it, so it is stopped here.
 */
import type { CDPSession } from 'playwright';
import { isSameRequest } from './proxy-gate.ts';

/** In one visit, frames included. */
const MAX_DOCUMENTS = 20;
/** Replies from the site in one visit, where the proxy cannot count the requests (TLS). */
const MAX_REPLIES = 200;

/** What the page of one visit has tried. */
export interface DocumentReport {
  /** Where the page itself led first, absolute; null when it stayed. */
  move: string | null;
}

interface Visit extends DocumentReport {
  url: string;
  /** Of our own navigation; its redirects keep it. Null before it began. */
  navigation: string | null;
  documents: number;
  replies: number;
  onFlood: () => void;
}

interface PausedDocument {
  request: { url: string };
  frameId: string;
  networkId?: string;
}

export class DocumentGate {
  #visit: Visit | null = null;

  /** From here on no document is asked for unless a visit allows it. */
  static async install(cdp: CDPSession): Promise<DocumentGate> {
    const gate = new DocumentGate();
    const { frameTree } = await cdp.send('Page.getFrameTree');
    cdp.on('Fetch.requestPaused', (paused) => {
      const { requestId } = paused;
      const done = gate.admits(paused, frameTree.frame.id)
        ? cdp.send('Fetch.continueRequest', { requestId })
        : // With this reason the document that is there stays; any other shows an error page in its place.
          cdp.send('Fetch.failRequest', { requestId, errorReason: 'Aborted' });
      done.catch(() => {});
    });
    cdp.on('Network.responseReceived', ({ response }) => {
      if (response.fromDiskCache !== true && /^https?:/.test(response.url)) gate.countReply();
    });
    await cdp.send('Fetch.enable', { patterns: [{ resourceType: 'Document', requestStage: 'Request' }] });
    return gate;
  }

  /** @param onFlood told once when the page has loaded more than any page needs */
  open(url: string, onFlood: () => void): Readonly<DocumentReport> {
    this.#visit = {
      url,
      move: null,
      navigation: null,
      documents: 0,
      replies: 0,
      onFlood,
    };
    return this.#visit;
  }

  shut(): void {
    this.#visit = null;
  }

  /** True when the document may be asked for. */
  admits({ request, frameId, networkId }: PausedDocument, mainFrame: string): boolean {
    const visit = this.#visit;
    if (visit === null) return false;
    if (frameId !== mainFrame) return ++visit.documents <= MAX_DOCUMENTS;
    if (visit.navigation === null) {
      // The page of the last visit may still be there, and try the same.
      if (networkId === undefined || !isSameRequest(request.url, visit.url)) return false;
      visit.navigation = networkId;
      visit.documents++;
      return true;
    }
    // A redirect has the number of the navigation; the page itself begins new ones.
    if (networkId !== visit.navigation) visit.move ??= request.url;
    return false;
  }

  countReply(): void {
    const visit = this.#visit;
    if (visit !== null && ++visit.replies === MAX_REPLIES + 1) visit.onFlood();
  }
}
