/** Good pages that also lure the visitor to a place it must never visit: a canary server listens there. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import type { Exchange } from './behaviour.ts';
import { sendHtml } from './behaviour.ts';

type Lure = (to: string) => { head?: string; body?: string };

const script = (text: string) => ({ body: `<script>${text}</script>` });
const quoted = (to: string): string => JSON.stringify(to).replaceAll('<', '\\u003c');

const LURES = {
  iframe: (to) => ({ body: `<iframe src="${to}"></iframe>` }),
  image: (to) => ({ body: `<img src="${to}/x.png">` }),
  script: (to) => ({ body: `<script src="${to}/x.js"></script>` }),
  stylesheet: (to) => ({ head: `<link rel="stylesheet" href="${to}/x.css">` }),
  prefetch: (to) => ({
    head: `<link rel="preconnect" href="${to}"><link rel="dns-prefetch" href="${to}"><link rel="prefetch" href="${to}/x"><link rel="preload" as="fetch" href="${to}/y">`,
  }),
  fetch: (to) => script(`fetch(${quoted(to)},{mode:'no-cors'}).catch(()=>{});navigator.sendBeacon(${quoted(to)},'x')`),
  websocket: (to) => script(`new WebSocket(${quoted(to.replace(/^http/, 'ws'))})`),
  'event-source': (to) => script(`new EventSource(${quoted(to)})`),
  'service-worker': (to) => script(`navigator.serviceWorker?.register('/sw.js?to='+encodeURIComponent(${quoted(to)}))`),
  worker: (to) => script(`new Worker('/sw.js?to='+encodeURIComponent(${quoted(to)}))`),
  popup: (to) => script(`window.open(${quoted(to)})`),
  form: (to) => ({ body: `<form id="lure" method="post" action="${to}"></form><script>lure.submit()</script>` }),
  location: (to) => script(`location.href=${quoted(to)}`),
  'meta-refresh': (to) => ({ head: `<meta http-equiv="refresh" content="0;url=${to}">` }),
  /** The site's own URLs that redirect there. */
  'redirected-parts': (to) => {
    const own = `/out?to=${encodeURIComponent(to)}`;
    return {
      body: `<iframe src="${own}"></iframe><script src="${own}"></script><script>fetch(${quoted(own)},{mode:'no-cors'}).catch(()=>{})</script>`,
    };
  },
  webrtc: (to) =>
    script(
      `const c=new RTCPeerConnection({iceServers:[{urls:'stun:'+new URL(${quoted(to)}).host}]});c.createDataChannel('x');c.createOffer().then(o=>c.setLocalDescription(o)).catch(()=>{})`,
    ),
} as const satisfies Record<string, Lure>;

export type LureName = keyof typeof LURES;
export const LURE_NAMES = Object.keys(LURES) as [LureName, ...LureName[]];

export const outwardShapes = [
  z.strictObject({
    type: z.literal('lure'),
    /** Default: all lures on one page, except those that leave the page. */
    how: z.enum(LURE_NAMES).optional(),
    /** Default: the canary. */
    to: z.string().min(1).optional(),
  }),
] as const;
export type OutwardBehaviour = z.output<(typeof outwardShapes)[number]>;

const LEAVING: readonly string[] = ['form', 'location', 'meta-refresh'];

export function answerOutward(exchange: Exchange, { how, to = exchange.canaryUrl }: OutwardBehaviour): void {
  const names = how ? [how] : LURE_NAMES.filter((name) => !LEAVING.includes(name));
  const lures = names.map((name) => (LURES[name] as Lure)(to));
  const join = (part: 'head' | 'body'): string => lures.map((lure) => lure[part] ?? '').join('\n');
  sendHtml(
    exchange,
    renderPage(exchange.product)
      .replace('</head>', () => `${join('head')}\n</head>`)
      .replace('</main>', () => `</main>\n${join('body')}\n`),
  );
}
