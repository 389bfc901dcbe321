/** Products that misbehave according to the prefix of their ID: `500-a`, `hang-b`; `once-500-c` only on its first request. */
import type { Behaviour, BehaviourInput } from './behaviour-schema.ts';
import { behaviourSchema } from './behaviour-schema.ts';
import { CHARSET_PREFIXES } from './behaviours/charset.ts';

const FORMS: Record<string, BehaviourInput> = {
  // Statuses and redirects
  '403-': { type: 'status', status: 403 },
  '404-': { type: 'status', status: 404 },
  '410-': { type: 'status', status: 410 },
  '429-': { type: 'status', status: 429, retryAfter: '5' },
  '500-': { type: 'status', status: 500 },
  '503-': { type: 'status', status: 503 },
  '999-': { type: 'status', status: 999 },
  '203-': { type: 'page', status: 203 },
  'wait1-': { type: 'status', status: 503, retryAfter: '1' },
  'wait10h-': { type: 'status', status: 429, retryAfter: '36000' },
  'waitdate-': { type: 'status', status: 503, retryAfterDateMs: 2_000 },
  'waitjunk-': { type: 'status', status: 429, retryAfter: 'soon, please' },
  'redirect-': { type: 'redirect', to: '/verify' },
  'chain5-': { type: 'chain', hops: 5 },
  'chain6-': { type: 'chain', hops: 6 },
  'loop-': { type: 'redirect', to: '{self}' },
  'offsite-': { type: 'redirect', to: '{canary}/item/x' },
  'imds-': { type: 'redirect', to: 'http://169.254.169.254/latest/meta-data/iam/security-credentials/' },
  'tofile-': { type: 'redirect', to: 'file:///etc/passwd' },
  'todata-': { type: 'redirect', to: 'data:text/html,<h1>data</h1>' },
  // Refusals
  'captcha-': { type: 'captcha' },
  'script-': { type: 'one-line-script' },
  'shell-': { type: 'script-shell' },
  'login-': { type: 'login' },
  // Connections
  'hang-': { type: 'hang', afterBytes: 0 },
  'stall-': { type: 'hang', afterBytes: 2_000 },
  'reset-': { type: 'reset', afterBytes: 0 },
  'cut-': { type: 'reset', afterBytes: 2_000 },
  'slow-': { type: 'slow', ms: 1_000 },
  'loris-': { type: 'trickle' },
  // Contents
  'untitled-': { type: 'missing-field', fields: ['title'] },
  'unpriced-': { type: 'missing-field', fields: ['price'] },
  'pdf-': { type: 'content-type', value: 'application/pdf' },
  'realpdf-': { type: 'binary', format: 'pdf' },
  'hiddenpdf-': { type: 'binary', format: 'pdf', declared: 'text/html' },
  'video-': { type: 'binary', format: 'video' },
  'plain-': { type: 'content-type', value: 'text/plain' },
  'untyped-': { type: 'content-type', value: null },
  'empty-': { type: 'empty' },
  'json-': { type: 'data', format: 'json' },
  'xml-': { type: 'data', format: 'xml' },
  'parts-': { type: 'two-pages' },
  // Compression
  'gzip-': { type: 'compressed', encoding: 'gzip' },
  'deflate-': { type: 'compressed', encoding: 'deflate' },
  'br-': { type: 'compressed', encoding: 'br' },
  'zstd-': { type: 'compressed', encoding: 'zstd' },
  'cutgzip-': { type: 'compressed', encoding: 'gzip', keepBytes: 1_000 },
  'falsegzip-': { type: 'falsely-compressed', declared: 'gzip' },
  'oddcoding-': { type: 'falsely-compressed', declared: 'x-shop' },
  'bomb-': { type: 'gzip-bomb' },
  // Floods
  'huge-': { type: 'huge', bytes: 20_000_000 },
  'huge50-': { type: 'huge', bytes: 50_000_000 },
  'endless-': { type: 'endless' },
  'nodes-': { type: 'nodes' },
  'nested-': { type: 'nesting' },
  'redos-': { type: 'redos' },
  // For browsers
  'js-': { type: 'script-built' },
  'jsfetch-': { type: 'fetch-built' },
  'assets-': { type: 'with-assets' },
  'blocked-': { type: 'attack', how: 'blocked' },
  'neverloaded-': { type: 'attack', how: 'never-loaded' },
  'spin-': { type: 'attack', how: 'spin' },
  'spinlate-': { type: 'attack', how: 'spin-late' },
  'memory-': { type: 'attack', how: 'memory' },
  'leak-': { type: 'attack', how: 'leak' },
  'popups-': { type: 'attack', how: 'popups' },
  'unleavable-': { type: 'attack', how: 'unleavable' },
  'download-': { type: 'attack', how: 'download' },
  'lure-': { type: 'lure' },
};

const PREFIXES: ReadonlyMap<string, Behaviour> = new Map([
  ...Object.entries(FORMS).map(([prefix, form]) => [prefix, behaviourSchema.parse(form)] as const),
  ...Object.entries(CHARSET_PREFIXES),
]);

const ONCE = 'once-';

/** The behaviour that the prefix of the ID selects; null when the ID has no such prefix. */
export function behaviourOfPrefix(id: string): { behaviour: Behaviour; once: boolean } | null {
  const once = id.startsWith(ONCE);
  const rest = once ? id.slice(ONCE.length) : id;
  const prefix = /^[a-z0-9]+-/.exec(rest)?.[0];
  const behaviour = prefix === undefined ? undefined : PREFIXES.get(prefix);
  return behaviour ? { behaviour, once } : null;
}
