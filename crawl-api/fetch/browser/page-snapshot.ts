/**
 * Checks whether the page is ready and reads its HTML, in an isolated world that the page's scripts cannot touch. One
 * round trip does all of it: round trips are the cost of a rendered page beside Chromium's own work.
 */
import type { CDPSession } from 'playwright';

/** The elements of one field. */
export type Sign = (
  | {
      /** CSS selector of an element that has the attribute, or some text. Open shadow roots are searched, too. */
      selector: string;
      attribute?: string;
    }
  | { xpath: string }
) & {
  /** The page is not ready before one is present. A selector that this browser cannot parse counts as present. */
  required: boolean;
};

export interface SnapshotOptions {
  /** The page is quiet while none of their values changes. */
  signs: readonly Sign[];
  /** False: the document must have been read to its end, with its deferred scripts. True: also everything it loads. */
  untilLoaded: boolean;
  /** Milliseconds without a change. A document that has no script is quiet as soon as it has been read. */
  quietMs: number;
  /** `version` of an earlier answer: the page is ready again only after a change. */
  seen: number | null;
  /** True: the HTML is left out unless the page is ready. */
  onlyReady: boolean;
  /** The snapshot answers within this time, unless the page keeps the processor busy. */
  waitMs: number;
  /** Maximum characters of a page that is returned. */
  maxChars: number;
}

export interface PageSnapshot {
  /** Everything that was waited for is there, and the page is quiet. */
  ready: boolean;
  /** Milliseconds since everything required was there; null when something is missing. */
  presentForMs: number | null;
  /** Milliseconds since the last change of a sign's values. */
  quietForMs: number;
  /** When that was, in milliseconds after the document was read and everything required was there; 0 when before. */
  changedAfterMs: number;
  /** Increases with each change. */
  version: number;
  /** No script can change the page. */
  isStatic: boolean;
  /** `loading` until the document has been read to its end. */
  state: 'loading' | 'interactive' | 'complete';
  contentType: string;
  length: number;
  /**
   * The page as it is shown: the content of an open shadow root stands in its element, and slots are replaced by what
   * they show. Null while loading, when it is longer than `maxChars`, and when it is left out.
   */
  html: string | null;
}

/** Milliseconds between two checks of a page that changes; a check may take a tenth of the time at most. */
const POLL_MS = 20;
/** A shadow root that a script attaches is no change that can be observed. */
const ROOTS_MS = 250;
/** Elements of a sign that are compared. */
const MAX_ELEMENTS = 200;

// Strings and not functions: they run in the browser, where other globals exist.

/** What is known of the document; kept from one probe to the next. */
const WATCH = `(signs) => {
  const now = () => performance.now();
  const roots = [];
  const watch = { mutatedMs: now(), changedMs: now(), presentMs: null, version: 0, isDirty: true, wake() {} };
  const observer = new MutationObserver(() => { watch.isDirty = true; watch.mutatedMs = now(); watch.wake(); });
  const attributes = signs.flatMap(({ attribute }) => attribute ?? []);
  const observe = (tree) => observer.observe(tree, {
    subtree: true, childList: true, characterData: true, ...(attributes.length > 0 ? { attributeFilter: attributes } : {}),
  });
  observe(document);

  watch.findRoots = () => {
    const before = roots.length;
    const search = (tree) => {
      for (const { shadowRoot } of tree.querySelectorAll('*')) {
        if (!shadowRoot) continue;
        if (!roots.includes(shadowRoot)) {
          roots.push(shadowRoot);
          observe(shadowRoot);
          watch.isDirty = true;
          watch.mutatedMs = now();
        }
        search(shadowRoot);
      }
    };
    search(document);
    return roots.length > before;
  };

  const isInside = (node, element) => {
    for (; node; node = node.getRootNode().host) if (element.contains(node)) return true;
    return false;
  };
  const textOf = (element) => {
    let text = element.textContent ?? element.nodeValue ?? '';
    for (const root of roots) if (isInside(root.host, element)) text += root.textContent;
    return text;
  };
  const byPath = (path) => {
    const found = document.evaluate(path, document, null, XPathResult.ANY_TYPE, null);
    if (found.resultType === XPathResult.STRING_TYPE) return [found.stringValue];
    if (found.resultType < XPathResult.UNORDERED_NODE_ITERATOR_TYPE) return ['value'];
    const values = [];
    for (let node; values.length < ${MAX_ELEMENTS} && (node = found.iterateNext());) values.push(textOf(node));
    return values;
  };
  const bySelector = ({ selector, attribute }) => {
    const elements = [document, ...roots].flatMap((tree) => [...tree.querySelectorAll(selector)].slice(0, ${MAX_ELEMENTS}));
    if (attribute === undefined) return elements.map(textOf);
    return elements.flatMap((element) => element.getAttribute(attribute) ?? []).map((value) => value + '"');
  };
  const read = (sign) => {
    try {
      return sign.xpath === undefined ? bySelector(sign) : byPath(sign.xpath);
    } catch {
      return ['unknown'];
    }
  };

  let last = null;
  watch.check = () => {
    // A selector may also match by an attribute that is not observed.
    const atMs = watch.isDirty ? watch.mutatedMs : now();
    watch.isDirty = false;
    const values = signs.map(read);
    const isPresent = values.every((texts, i) => !signs[i].required || texts.some((text) => text.trim() !== ''));
    watch.presentMs = isPresent ? (watch.presentMs ?? atMs) : null;
    const all = JSON.stringify(values);
    if (all === last) return;
    last = all;
    watch.version++;
    watch.changedMs = atMs;
  };

  watch.isStatic = () => document.querySelector(
    'script:not([type*="json" i]), iframe, frame, object, embed, [onload], [onerror]') === null;

  watch.html = () => {
    const top = document.documentElement;
    const hosts = roots.map(({ host }) => host).filter(({ isConnected }) => isConnected);
    if (hosts.length === 0) return top?.outerHTML ?? '';
    const open = new Set();
    const note = (node) => { for (; node && !open.has(node); node = node.parentNode ?? node.host) open.add(node); };
    hosts.forEach(note);
    for (const { shadowRoot } of hosts) shadowRoot.querySelectorAll('slot').forEach(note);
    // In a document without a view, in which no script runs.
    const copies = document.implementation.createHTMLDocument('');
    const show = (node) => {
      if (!open.has(node)) return [copies.importNode(node, true)];
      const root = node.shadowRoot;
      if (!root && node.localName === 'slot' && node.getRootNode() !== document) {
        const shown = node.assignedNodes();
        return (shown.length > 0 ? shown : [...node.childNodes]).flatMap(show);
      }
      const copy = copies.importNode(node, false);
      // Data is not shown in either tree.
      const data = root ? [...node.children].filter((child) => !child.assignedSlot && child.matches('script, meta, link')) : [];
      copy.append(...[...data, ...(root ?? node).childNodes].flatMap(show));
      return [copy];
    };
    return show(top)[0].outerHTML;
  };
  return watch;
}`;

const PROBE = `async (o) => {
  const now = () => performance.now();
  const end = now() + o.waitMs;
  const key = JSON.stringify(o.signs);
  let watch = globalThis.watch?.key === key ? globalThis.watch : null;
  let wake = () => {};
  const pause = (ms) => new Promise((resolve) => {
    wake = resolve;
    if (watch) watch.wake = resolve;
    setTimeout(resolve, ms);
  });
  // In a task of its own: the document has been read only after the event.
  const onRead = () => setTimeout(() => wake());
  const events = ['DOMContentLoaded', 'readystatechange'];
  for (const event of events) document.addEventListener(event, onRead);
  // When the document and the scripts that it waits for had been read; 0 before.
  const [navigation] = performance.getEntriesByType('navigation');
  const readMs = () => navigation?.domContentLoadedEventEnd ?? (document.readyState === 'complete' ? 1 : 0);
  while (readMs() === 0 && now() < end) await pause(Math.min(${ROOTS_MS}, end - now()));

  let isStatic = false, ready = false, rootsMs = 0;
  if (document.readyState !== 'loading') {
    watch ??= globalThis.watch = Object.assign((${WATCH})(o.signs), { key });
    for (;;) {
      const startMs = now();
      watch.check();
      if (startMs >= rootsMs && (rootsMs > 0 || watch.presentMs === null)) watch.findRoots();
      if (startMs >= rootsMs) rootsMs = startMs + ${ROOTS_MS};
      if (watch.isDirty) watch.check();
      const tookMs = now() - startMs;
      isStatic = watch.isStatic();
      const isRead = o.untilLoaded ? document.readyState === 'complete' : readMs() > 0;
      const leftMs = watch.changedMs + (isStatic ? 0 : o.quietMs) - now();
      const isNew = isRead && watch.presentMs !== null && watch.version !== o.seen;
      ready = isNew && leftMs <= 0;
      if (now() >= end || (ready && !watch.findRoots())) break;
      await pause(Math.min(ready ? 0 : isNew ? leftMs : ${ROOTS_MS}, end - now()));
      if (watch.isDirty) await pause(Math.min(Math.max(${POLL_MS}, tookMs * 10), end - now()));
    }
  }
  for (const event of events) document.removeEventListener(event, onRead);
  const state = document.readyState;
  const html = state === 'loading' || (o.onlyReady && !ready) ? null : watch.html();
  const length = html === null ? 0 : html.length;
  const { presentMs = null, changedMs = now(), version = 0 } = watch ?? {};
  return {
    ready, presentForMs: presentMs === null ? null : now() - presentMs, quietForMs: now() - changedMs,
    changedAfterMs: Math.max(0, changedMs - Math.max(presentMs ?? 0, readMs())), version, isStatic,
    state, contentType: document.contentType, length, html: length > o.maxChars ? null : html,
  };
}`;

/** Rejects when the document changes or is gone. Never settles while a script does not end. */
export async function takeSnapshot(cdp: CDPSession, frameId: string, options: SnapshotOptions): Promise<PageSnapshot> {
  const { executionContextId } = await cdp.send('Page.createIsolatedWorld', { frameId, worldName: 'probe' });
  const { result, exceptionDetails } = await cdp.send('Runtime.callFunctionOn', {
    functionDeclaration: PROBE,
    arguments: [{ value: options }],
    executionContextId,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value as PageSnapshot;
}
