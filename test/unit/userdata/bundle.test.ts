import { beforeAll, describe, expect, it } from 'vitest';
import { createHash } from 'node:crypto';
import path from 'node:path';
import type { Bundle } from '../../../userdata/bundle.ts';
import { buildBundle } from '../../../userdata/bundle.ts';

let bundle: Bundle;
let text: string;
beforeAll(async () => {
  bundle = await buildBundle();
  text = Buffer.from(bundle.bytes).toString('utf8');
});

describe('the bundle', () => {
  it('is named by the hash of its bytes', () => {
    expect(bundle.sha256).toBe(createHash('sha256').update(bundle.bytes).digest('hex'));
  });

  it('has the same bytes every time, wherever it is built', async () => {
    expect((await buildBundle()).sha256).toBe(bundle.sha256);
    expect(text).not.toContain(path.resolve(import.meta.dirname, '../../..'));
  });

  it("needs nothing but Node's own modules", () => {
    const statements = text.matchAll(/(?:^|[;}\n])import[^;"'()]*["']([^"']+)["']/g);
    const calls = text.matchAll(/\bimport\(["']([^"']+)["']\)/g);
    const asked = [...statements, ...calls].map((match) => match[1]!);
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter((name) => !name.startsWith('node:') && !BUILT_IN.has(name))).toEqual([]);
  });

  it('leaves out what the crawl API does not use', () => {
    expect(text).not.toContain('WebSocketStream');
    expect(bundle.bytes.length).toBeLessThan(2_200_000);
  });
});

const BUILT_IN = new Set(process.getBuiltinModule('node:module').builtinModules);
