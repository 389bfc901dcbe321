/** Pages that attack the browser: never loaded, never idle, never closed, hungry, or full of windows. */
import { z } from 'zod';
import { renderPage } from '../page.ts';
import type { Exchange } from './behaviour.ts';
import { sendHtml } from './behaviour.ts';

const ATTACKS = {
  /** A script that never arrives stands before the product. */
  blocked: { before: '<script src="/api/hang"></script>' },
  /** A script that never arrives stands behind it: the fields are there, the load event never comes. */
  'never-loaded': { after: '<script async src="/api/hang"></script>' },
  /** Script that never ends, before the product. */
  spin: { before: '<script>for(;;);</script>' },
  /** Script that begins to spin when the fields are there. */
  'spin-late': { after: '<script>setTimeout(()=>{for(;;);},20)</script>' },
  /** Takes memory until there is none. */
  memory: {
    before: '<script>const held=[];for(;;){const a=new Uint8Array(16<<20);a.fill(1);held.push(a)}</script>',
  },
  /** The same in small steps, with the fields in place: a leak. */
  leak: {
    after:
      '<script>window.held=[];setInterval(()=>{const a=new Uint8Array(8<<20);a.fill(1);window.held.push(a)},50)</script>',
  },
  /** Windows and dialogs without an end, and a page that does not want to be left. */
  popups: {
    after: `<script>addEventListener('beforeunload',e=>{e.preventDefault();e.returnValue='stay'});
setInterval(()=>{window.open('/home');alert('look');confirm('buy?');prompt('name?');print()},20)</script>`,
  },
  /** Spins when it is left or closed. */
  unleavable: {
    after: `<script>for(const e of ['beforeunload','pagehide','unload','visibilitychange'])addEventListener(e,()=>{for(;;);})</script>`,
  },
  /** Starts a download by itself. */
  download: { after: '<script>location.href="/media/catalogue.zip"</script>' },
} as const satisfies Record<string, { before?: string; after?: string }>;

export type Attack = keyof typeof ATTACKS;
const ATTACK_NAMES = Object.keys(ATTACKS) as [Attack, ...Attack[]];

export const hostileShapes = [z.strictObject({ type: z.literal('attack'), how: z.enum(ATTACK_NAMES) })] as const;
export type HostileBehaviour = z.output<(typeof hostileShapes)[number]>;

export function answerHostile(exchange: Exchange, { how }: HostileBehaviour): void {
  const { before = '', after = '' }: { before?: string; after?: string } = ATTACKS[how];
  sendHtml(
    exchange,
    renderPage(exchange.product).replace('<main>', `${before}\n<main>`).replace('</main>', `</main>\n${after}\n`),
  );
}
