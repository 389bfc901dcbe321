import { createHash } from 'node:crypto';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Built } from '../../../shared/adapters/build-cache.ts';
import { buildProgram, compileProgram } from '../../../userdata/program.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

let built: Built;
beforeAll(async () => {
  built = await compileProgram({});
});

describe('the program', () => {
  it('is named by the hash of its bytes', async () => {
    const { bytes, sha256 } = await buildProgram();
    expect(Buffer.from(bytes).toString('utf8')).toBe(built.output);
    expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
  });

  it('has the same bytes every time, wherever it is built', async () => {
    expect((await compileProgram({})).output).toBe(built.output);
    expect(built.output).not.toContain(ROOT);
  });

  it("needs nothing but Node's own modules", () => {
    const statements = built.output.matchAll(/(?:^|[;}\n])import[^;"'()]*["']([^"']+)["']/g);
    const calls = built.output.matchAll(/\bimport\(["']([^"']+)["']\)/g);
    const asked = [...statements, ...calls].map((match) => match[1]!);
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter((name) => !name.startsWith('node:') && !BUILT_IN.has(name))).toEqual([]);
  });

  it('omits what the crawl API does not use', () => {
    expect(built.output).not.toContain('WebSocketStream');
    expect(built.output).not.toContain('Opera Coast');
    expect(Buffer.byteLength(built.output)).toBeLessThan(2_450_000);
  });

  it('names the files that went into it', () => {
    const files = ['crawl-api/main.ts', 'userdata/program.ts', 'node_modules/undici/lib/dispatcher/agent.js'];
    const inputs = built.inputs.map((file) => path.relative(ROOT, file));
    expect(inputs).toEqual(expect.arrayContaining([...files, 'node_modules/esbuild/package.json']));
  });
});

const BUILT_IN = new Set(process.getBuiltinModule('node:module').builtinModules);
