/** The bundle with a browser runs on its own: instances have no node_modules. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compileProgram, withBrowser } from '../../../userdata/program.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { Site, chromiumPath } from './stage.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
let site: Site;
beforeAll(async () => {
  site = await Site.start('127.0.7.14');
  site.pages.set('/p/good', '<h1>good</h1>');
});
afterAll(() => site.stop());

it('renders a page from a folder with nothing else in it', async () => {
  using folder = tempDir();
  const result = await build({
    entryPoints: [path.join(import.meta.dirname, 'mortal-owner.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    minify: true,
    logLevel: 'silent',
    plugins: [withBrowser(ROOT)],
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
  });
  writeFileSync(folder.file('bundle.mjs'), result.outputFiles[0]!.contents);
  const args = [folder.file('bundle.mjs'), chromiumPath(), folder.path, `${site.url}/p/good`];
  await new Promise<void>((resolve, reject) => {
    const child = execFile(process.execPath, args, { cwd: folder.path }, (error) => {
      // Killed below, once it has done its work.
      if (error && error.signal !== 'SIGKILL') reject(error);
      else resolve();
    });
    child.stdout!.on('data', (text: string) => text.includes('ready') && child.kill('SIGKILL'));
  });
  expect(site.paths()).toContain('/p/good');
});

it(
  'is reproducible, contains no path of this machine, and includes a browser only on request',
  { tags: ['nightly'] },
  async () => {
    const [one, two, without] = [
      await compileProgram({ browser: true }),
      await compileProgram({ browser: true }),
      await compileProgram({}),
    ];
    expect(one.output).toBe(two.output);
    expect(one.output).not.toContain(ROOT);
    expect(Buffer.byteLength(one.output)).toBeLessThan(6_500_000);
    expect(without.output.length).toBeLessThan(one.output.length / 2);
  },
);
