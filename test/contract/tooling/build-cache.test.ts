import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Built, cachedBuild, CLOCK_LAG_MS } from '../../../shared/adapters/build-cache.ts';
import { waitFor } from '../../support/processes.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

let folder: TempDir;
let source: string;
let builds: number;
beforeEach(async () => {
  folder = tempDir();
  source = folder.file('source.ts');
  builds = 0;
  await edit('first');
});
afterEach(() => folder.remove());

/** Returns once the file counts as changed in the past. */
async function edit(text: string): Promise<void> {
  writeFileSync(source, text);
  await waitFor(() => Date.now() > statSync(source).ctimeMs + CLOCK_LAG_MS, { what: 'the clock to pass the change' });
}

/** Its output is the source. */
async function build(): Promise<Built> {
  builds++;
  return { output: readFileSync(source, 'utf8'), inputs: [source] };
}

const load = (name = 'program', cache = folder.file('cache')): Promise<string> =>
  cachedBuild(name, build, { folder: cache });

describe('what is built from sources', () => {
  it('is built once, and again when a file that went into it has changed', async () => {
    expect([await load(), await load(), builds]).toEqual(['first', 'first', 1]);
    await edit('other');
    expect([await load(), await load(), builds]).toEqual(['other', 'other', 2]);
  });

  it('is kept by name', async () => {
    await load('program');
    await load('page');
    expect(builds).toBe(2);
  });

  it('is built again for another checkout with the same node_modules', async () => {
    await load();
    await cachedBuild('program', build, { folder: folder.file('cache'), checkout: '/other/' });
    expect(builds).toBe(2);
  });

  it('is not kept when a file changes during the build', async () => {
    const changing = async (): Promise<Built> => {
      const built = await build();
      writeFileSync(source, 'later');
      return built;
    };
    expect(await cachedBuild('program', changing, { folder: folder.file('cache') })).toBe('first');
    expect(await load()).toBe('later');
  });

  it.each(['', '{"inputs":', '{}'])('is built again when its file has %j', async (contents) => {
    await load();
    writeFileSync(folder.file('cache', 'program.json'), contents);
    expect([await load(), builds]).toEqual(['first', 2]);
  });

  it('is built again when a file that went into it is gone', async () => {
    await load();
    const file = folder.file('cache', 'program.json');
    const entry = JSON.parse(readFileSync(file, 'utf8')) as { inputs: [string, string][] };
    writeFileSync(file, JSON.stringify({ ...entry, inputs: [...entry.inputs, [folder.file('gone.ts'), '1 1']] }));
    expect([await load(), builds]).toEqual(['first', 2]);
  });

  it('is built each time where it cannot be kept', async () => {
    writeFileSync(folder.file('file'), '');
    const nowhere = folder.file('file', 'below');
    expect([await load('program', nowhere), await load('program', nowhere), builds]).toEqual(['first', 'first', 2]);
  });
});
