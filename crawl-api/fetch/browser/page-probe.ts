/**
 * Asks the page, in a world of its own that the page's scripts cannot touch, whether it is there, and for its HTML. One
 * round trip does all of it: they are what a rendered page costs beside Chromium's own work.
 */
import type { CDPSession } from 'playwright';

export interface Sign {
  /** CSS selector of an element that has the attribute, or some text. */
  selector: string;
  attribute?: string;
}

export interface ProbeOptions {
  /** All must be there. One that this browser cannot read is taken as there. */
  signs: readonly Sign[];
  /** False: the document must have been read to its end. True: also all it loads, and nothing has changed for `quietMs`. */
  untilLoaded: boolean;
  quietMs: number;
  /** The probe answers after this time at the latest, unless the page keeps the processor busy. */
  waitMs: number;
  /** A longer page is not sent. */
  maxChars: number;
}

export interface ProbeAnswer {
  /** All that was waited for is there. */
  ready: boolean;
  /** `loading` until the document has been read to its end. */
  state: 'loading' | 'interactive' | 'complete';
  contentType: string;
  length: number;
  /** Null while loading, and when it is longer than `maxChars`. */
  html: string | null;
}

const POLL_MS = 20;

// Text and not a function: it runs in the browser, where other globals are.
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

/** Rejects when the document goes away meanwhile, and when the page is gone. Answers never, when a script does not end. */
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
