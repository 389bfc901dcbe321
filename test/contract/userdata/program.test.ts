import { createHash } from 'node:crypto';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildProgram, type Program } from '../../../userdata/program.ts';

let program: Program;
let text: string;
beforeAll(async () => {
  program = await buildProgram();
  text = Buffer.from(program.bytes).toString('utf8');
});

describe('the program', () => {
  it('is named by the hash of its bytes', () => {
    expect(program.sha256).toBe(createHash('sha256').update(program.bytes).digest('hex'));
  });

  it('has the same bytes every time, wherever it is built', async () => {
    expect((await buildProgram()).sha256).toBe(program.sha256);
    expect(text).not.toContain(path.resolve(import.meta.dirname, '../../..'));
  });

  it("needs nothing but Node's own modules", () => {
    const statements = text.matchAll(/(?:^|[;}\n])import[^;"'()]*["']([^"']+)["']/g);
    const calls = text.matchAll(/\bimport\(["']([^"']+)["']\)/g);
    const asked = [...statements, ...calls].map((match) => match[1]!);
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter((name) => !name.startsWith('node:') && !BUILT_IN.has(name))).toEqual([]);
  });

  it('omits what the crawl API does not use', () => {
    expect(text).not.toContain('WebSocketStream');
    expect(program.bytes.length).toBeLessThan(2_400_000);
  });
});

const BUILT_IN = new Set(process.getBuiltinModule('node:module').builtinModules);
