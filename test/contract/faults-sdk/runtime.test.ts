/** F55: the package's minimum Node is one that every AWS SDK it uses still runs on. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

interface Manifest {
  engines: { node: string };
  dependencies: Record<string, string>;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): Manifest => JSON.parse(readFileSync(`${ROOT}${path}`, 'utf8')) as Manifest;

/** `>=22.19` is [22, 19, 0]. */
function minimumOf({ engines }: Manifest): number[] {
  const found = /^>=\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(engines.node);
  if (!found) throw new Error(`engines.node is no plain minimum: ${engines.node}`);
  return [found[1], found[2] ?? 0, found[3] ?? 0].map(Number);
}

const asNumber = ([major = 0, minor = 0, patch = 0]: number[]): number => major * 1e6 + minor * 1e3 + patch;

describe('F55: the minimum Node version', () => {
  const own = read('package.json');
  const sdks = Object.keys(own.dependencies).filter((name) => name.startsWith('@aws-sdk/'));

  it.each(sdks)('is new enough for %s', (name) => {
    const needed = minimumOf(read(`node_modules/${name}/package.json`));
    expect(asNumber(minimumOf(own))).toBeGreaterThanOrEqual(asNumber(needed));
  });
});
