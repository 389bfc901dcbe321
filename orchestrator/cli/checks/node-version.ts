/** The Node that runs the main server. */
import packageFile from '../../../package.json' with { type: 'json' };
import type { Check } from './check.ts';
import { failed, ok } from './check.ts';

const NEEDED = packageFile.engines.node.replace('>=', '');

/** Exported for its test. */
export function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = [0, 1, 2].find((i) => (a[i] ?? 0) !== (b[i] ?? 0));
  return at !== undefined && (a[at] ?? 0) < (b[at] ?? 0);
}

export const nodeVersion: Check = {
  id: 'node',
  title: 'Node of this machine',
  kinds: ['aws', 'dry'],
  run() {
    const { node } = process.versions;
    const text = `Node ${node} on ${process.platform}-${process.arch}`;
    if (isOlder(node, NEEDED))
      return Promise.resolve([failed('platform', `${text}: ${NEEDED} or newer is needed`, 'Install a newer Node')]);
    return Promise.resolve([ok(text)]);
  },
};
