/**
 * Checks whether the page is ready and reads its HTML, in an isolated world that the page's scripts cannot touch. One
 * round trip does all of it: round trips are the cost of a rendered page beside Chromium's own work.
 */
import type { CDPSession } from 'playwright';

export interface Sign {
  /** CSS selector of an element that has the attribute, or some text. */
  selector: string;
  attribute?: string;
}

export interface ProbeOptions {
  /** All must be present. A selector that this browser cannot parse counts as present. */
  signs: readonly Sign[];
  /**
   * False: the document must have been read to its end. True: also everything it loads, and no change for `quietMs`.
   */
  untilLoaded: boolean;
  quietMs: number;
  /** The probe answers within this time, unless the page keeps the processor busy. */
  waitMs: number;
  /** Maximum characters of a page that is returned. */
  maxChars: number;
}

export interface ProbeAnswer {
  /** Everything that was waited for is there. */
  ready: boolean;
  /** `loading` until the document has been read to its end. */
  state: 'loading' | 'interactive' | 'complete';
  contentType: string;
  length: number;
  /** Null while loading, and when it is longer than `maxChars`. */
  html: string | null;
}

const POLL_MS = 20;

// A string and not a function: it runs in the browser, where other globals exist.
const PROBE = `async (o) => {
  const now = () => performance.now();
  const end = now() + o.waitMs;
  let changed = now();
  let wake = () => {};
  const observer = new MutationObserver(() => { changed = now(); });
  if (o.untilLoaded) observer.observe(document, { subtree: true, childList: true, characterData: true });
  const isThere = ({ selector, attribute }) => {
    try {
      for (const e of document.querySelectorAll(selector))
        if (attribute === undefined ? e.textContent.trim() !== '' : e.hasAttribute(attribute)) return true;
      return false;
    } catch { return true; }
  };
  const isReady = () => {
    if (document.readyState === 'loading') return false;
    if (o.untilLoaded && (document.readyState !== 'complete' || now() - changed < o.quietMs)) return false;
    return o.signs.every(isThere);
  };
  const onChange = () => wake();
  document.addEventListener('readystatechange', onChange);
  let ready = isReady();
  while (!ready && now() < end) {
    await new Promise((resolve) => { wake = resolve; setTimeout(resolve, ${POLL_MS}); });
    ready = isReady();
  }
  document.removeEventListener('readystatechange', onChange);
  observer.disconnect();
  const state = document.readyState;
  const html = state === 'loading' ? null : document.documentElement?.outerHTML ?? '';
  const length = html === null ? 0 : html.length;
  return { ready, state, contentType: document.contentType, length, html: length > o.maxChars ? null : html };
}`;

/** Rejects when the document changes or is gone. Never settles while a script does not end. */
export async function probePage(cdp: CDPSession, options: ProbeOptions): Promise<ProbeAnswer> {
  const { frameTree } = await cdp.send('Page.getFrameTree');
  const { executionContextId } = await cdp.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
    worldName: 'probe',
  });
  const { result, exceptionDetails } = await cdp.send('Runtime.evaluate', {
    expression: `(${PROBE})(${JSON.stringify(options)})`,
    contextId: executionContextId,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value as ProbeAnswer;
}
