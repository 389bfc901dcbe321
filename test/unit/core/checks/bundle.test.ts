/** The check of the bundle that instances fetch: it passes only where the run can get the bundle. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundle } from '../../../../orchestrator/core/checks/run.ts';
import type { CheckContext } from '../../../../orchestrator/core/checks/check.ts';
import { nodeToFetch } from '../../../../orchestrator/core/checks/machine.ts';
import { NODE_RELEASES, NODE_VERSION } from '../../../../userdata/node-release.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

/** An architecture other than this machine's: its Node can only come from the cache or npm. */
const FOREIGN = process.arch === 'x64' ? 't4g.nano' : 't3.nano';
const PLATFORM = process.arch === 'x64' ? 'linux-arm64' : 'linux-x64';
const { packageName, integrity } = NODE_RELEASES[PLATFORM];

let folder: TempDir;
const path = process.env.PATH;
beforeEach(() => (folder = tempDir()));
afterEach(() => {
  process.env.PATH = path;
  folder.remove();
});

const context = (kind: 'aws' | 'sandbox'): CheckContext =>
  ({
    config: { file: folder.file('fleet.yaml'), values: { site: { render: 'http' } } },
    target: { kind },
    facts: { instanceType: () => FOREIGN },
  }) as unknown as CheckContext;

function npmThatSays(text: string): void {
  mkdirSync(folder.file('bin'));
  writeFileSync(folder.file('bin', 'npm'), `#!/bin/sh\necho '${text}'\n`);
  chmodSync(folder.file('bin', 'npm'), 0o755);
  process.env.PATH = `${folder.file('bin')}:/bin:/usr/bin`;
}

describe('the bundle for the instances', () => {
  it('is unavailable on AWS without its Node', async () => {
    process.env.PATH = '/nonexistent';
    await expect(bundle.run(context('aws'))).rejects.toMatchObject({ code: 'runtime-unavailable' });
  });

  it('is available where the registry has that Node, and the check says that the run fetches it', async () => {
    npmThatSays(integrity);
    const findings = [await bundle.run(context('aws'))].flat();
    expect(findings.map((f) => f.level)).toEqual(['ok', 'ok']);
    expect(findings[1]!.text).toContain(`fetches Node ${NODE_VERSION} for ${PLATFORM}`);
  });

  it('needs no request when the cache has that Node, or in a dry run', async () => {
    process.env.PATH = '/nonexistent';
    expect(await nodeToFetch(context('sandbox'))).toBeNull();
    mkdirSync(folder.file('.crawlfleet', 'cache'), { recursive: true });
    writeFileSync(folder.file('.crawlfleet', 'cache', `${packageName}-${NODE_VERSION}.tgz`), '');
    expect(await nodeToFetch(context('aws'))).toBeNull();
  });
});
