/**
 * Products that misbehave according to the prefix of their ID: `500-a`, `hang-b`; `once-500-c` only on its first
 * request.
 */
import { type Behaviour, type BehaviourInput, behaviourSchema } from './behaviour-schema.ts';
import { CHARSET_PREFIXES } from './behaviours/charset.ts';

const FORMS: Record<string, BehaviourInput> = {
  // Statuses and redirects
  '404-': { type: 'status', status: 404 },
  '410-': { type: 'status', status: 410 },
  '500-': { type: 'status', status: 500 },
  '203-': { type: 'page', status: 203 },
  'chain5-': { type: 'chain', hops: 5 },
  // Connections
  'hang-': { type: 'hang' },
  'reset-': { type: 'reset' },
  'slow-': { type: 'slow', ms: 1_000 },
  // Contents
  'untitled-': { type: 'missing-field', fields: ['title'] },
  'unpriced-': { type: 'missing-field', fields: ['price'] },
  'plain-': { type: 'content-type', value: 'text/plain' },
  'untyped-': { type: 'content-type', value: null },
  'json-': { type: 'data', format: 'json' },
  'xml-': { type: 'data', format: 'xml' },
  'parts-': { type: 'two-pages' },
  // Compression
  'gzip-': { type: 'compressed', encoding: 'gzip' },
  'deflate-': { type: 'compressed', encoding: 'deflate' },
  'br-': { type: 'compressed', encoding: 'br' },
  'zstd-': { type: 'compressed', encoding: 'zstd' },
  // Floods
  'nodes-': { type: 'nodes' },
  'redos-': { type: 'redos' },
  // For browsers
  'js-': { type: 'script-built' },
  'jsfetch-': { type: 'fetch-built' },
  'assets-': { type: 'with-assets' },
  'neverloaded-': { type: 'never-loaded' },
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
