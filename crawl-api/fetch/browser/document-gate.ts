/**
 * Decides which documents the browser may request, before they are sent: one navigation of the main frame per visit,
 * ours. Redirects of the site, and navigations by a script, a refresh, a form or a reload, are reported and not
 * followed: each would be a request outside the pace, as many times as the page likes. Over TLS the proxy cannot see
 * them, so they are stopped here.
 */
import type { CDPSession } from 'playwright';
import type { Sends } from '../user-headers.ts';
import { isSameRequest } from './proxy-gate.ts';

/** Maximum documents in one visit, frames included. */
const MAX_DOCUMENTS = 20;
/** Maximum replies from the site in one visit, where the proxy cannot count the requests (TLS). */
const MAX_REPLIES = 200;

/** The part of Chromium's event that says which request is paused. */
interface PausedRequest extends PausedDocument {
  requestId: string;
  resourceType: string;
  request: { url: string; headers: Record<string, string> };
}

/** The navigations that the page of one visit attempted. */
export interface DocumentReport {
  /** Absolute URL of the page's own first navigation; null when it stayed. */
  move: string | null;
}

interface Visit extends DocumentReport {
  url: string;
  /** ID of our own navigation; its redirects keep it. Null before it began. */
  navigation: string | null;
  documents: number;
  replies: number;
  onFlood: () => void;
  sends: Sends | undefined;
}

interface PausedDocument {
  request: { url: string };
  frameId: string;
  networkId?: string;
}

export class DocumentGate {
  /** ID of the page's main frame; the page keeps it. */
  readonly mainFrame: string;
  #visit: Visit | null = null;

  constructor(mainFrame: string) {
    this.mainFrame = mainFrame;
  }

  /**
   * Installs a gate: from now on a document is requested only if a visit allows it.
   * @param origins where visits send headers of the user: every request there pauses to get them
   */
  static async install(cdp: CDPSession, origins: readonly string[]): Promise<DocumentGate> {
    const { frameTree } = await cdp.send('Page.getFrameTree');
    const gate = new DocumentGate(frameTree.frame.id);
    cdp.on('Fetch.requestPaused', (paused: PausedRequest) => {
      const { requestId } = paused;
      const done =
        paused.resourceType !== 'Document' || gate.admits(paused)
          ? cdp.send('Fetch.continueRequest', { requestId, ...gate.headersFor(paused.request) })
          : // With this reason the current document stays; any other shows an error page in its place.
            cdp.send('Fetch.failRequest', { requestId, errorReason: 'Aborted' });
      done.catch(() => {});
    });
    cdp.on('Network.responseReceived', ({ response }) => {
      if (response.fromDiskCache !== true && /^https?:/.test(response.url)) gate.countReply();
    });
    const patterns = [
      { resourceType: 'Document' as const },
      ...origins.map((origin) => ({ urlPattern: `${origin}/*` })),
    ];
    await cdp.send('Fetch.enable', {
      patterns: patterns.map((which) => ({ ...which, requestStage: 'Request' as const })),
    });
    return gate;
  }

  /** @param onFlood called once when the page has loaded more than any page needs */
  open(url: string, onFlood: () => void, sends?: Sends): Readonly<DocumentReport> {
    this.#visit = { url, move: null, navigation: null, documents: 0, replies: 0, onFlood, sends };
    return this.#visit;
  }

  shut(): void {
    this.#visit = null;
  }

  /** True when the document may be requested. */
  admits({ request, frameId, networkId }: PausedDocument): boolean {
    const visit = this.#visit;
    if (visit === null) return false;
    if (frameId !== this.mainFrame) return ++visit.documents <= MAX_DOCUMENTS;
    if (visit.navigation === null) {
      // The page of the last visit may still be there and attempt the same navigation.
      if (networkId === undefined || !isSameRequest(request.url, visit.url)) return false;
      visit.navigation = networkId;
      visit.documents++;
      return true;
    }
    // A redirect has the ID of the navigation; the page itself begins new ones.
    if (networkId !== visit.navigation) visit.move ??= request.url;
    return false;
  }

  /**
   * The headers of a request with those of the user, if it goes to their authority; nothing otherwise. Chromium does
   * not keep over a redirect what was added.
   */
  headersFor({ url, headers }: PausedRequest['request']): { headers?: { name: string; value: string }[] } {
    const { sends } = this.#visit ?? {};
    if (sends === undefined || URL.parse(url)?.origin !== sends.origin) return {};
    const usual = Object.entries(headers).filter(([name]) => sends.headers[name.toLowerCase()] === undefined);
    const all = [...usual, ...Object.entries(sends.headers)];
    return { headers: all.map(([name, value]) => ({ name, value })) };
  }

  countReply(): void {
    const visit = this.#visit;
    if (visit !== null && ++visit.replies === MAX_REPLIES + 1) visit.onFlood();
  }
}
