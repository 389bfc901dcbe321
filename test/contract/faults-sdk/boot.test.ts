/** F10 and F56: boots that fail, as EC2 shows them through the SDK, and what a boot needs to succeed. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../../userdata/program.ts';
import { waitFor } from '../../support/processes.ts';
import { uploadBundle } from '../../support/sandbox/boot.ts';
import { TEST_BUNDLE_SHA256, userDataFor } from '../../support/sandbox/test-bundle.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { type SandboxCloud, useSandboxCloud } from './sandbox-cloud.ts';

describe('a boot', () => {
  let cloud: SandboxCloud;
  let bundleUrl: string;
  useSandboxCloud((given) => (cloud = given), { allowBundles: [TEST_BUNDLE_SHA256] });
  beforeAll(async () => {
    bundleUrl = await uploadBundle(cloud.clients);
  });

  const textOf = (base64: string): string => Buffer.from(base64, 'base64').toString('utf8');

  /** The console of an instance with this user data, once it contains `part`. */
  async function consoleOf(userData: string, part: string): Promise<string> {
    const request = cloud.request({ userData });
    const { id } = await cloud.launched(request);
    const said = await waitFor(
      async () => {
        const output = await cloud.adapters.compute.consoleOutput(id);
        return output?.includes(part) ? output : null;
      },
      { what: `the console to say "${part}"` },
    );
    // EC2 itself sees no fault: only the missing hello reveals it.
    expect(await cloud.shown(request)).toMatchObject([{ id, state: 'running' }]);
    return said;
  }

  it('F10: whose user data never runs shows a running instance; only the console reveals it', async () => {
    await cloud.misbehave({ what: 'silent-boot', count: 1 });
    expect(await consoleOf(textOf(userDataFor({ bundleUrl })), 'not carried out')).toContain('boot: i-');
  });

  it('F10: whose program crashes in a loop is started again without limit, and the console shows each end', async () => {
    await cloud.misbehave({ what: 'dead-boot', count: 1 });
    await consoleOf(
      textOf(userDataFor({ bundleUrl })),
      'crawl-api.service: the program ended with code 1.\n'.repeat(6),
    );
  });

  it('F56: whose bundle is missing or has a wrong hash runs nothing and logs why', async () => {
    const none = textOf(userDataFor({ bundleUrl: `${cloud.sandbox.endpoint}/bundles/none.tar.gz` }));
    // A wrong URL stays wrong: it is not requested again.
    const refused = await consoleOf(none, 'boot: failed');
    expect(refused).toContain('answers 403');
    expect(refused).not.toContain('trying again');
    const foreign = textOf(userDataFor({ bundleUrl, sha256: '0'.repeat(64) }));
    expect(await consoleOf(foreign, 'boot: failed')).toContain('not one this sandbox was allowed to run');
  });

  it('F56: survives a short failure of the bucket, as the user data does', async () => {
    await cloud.misbehave({ what: 'error', action: 'GetObject', code: 'SlowDown', count: 2 });
    const said = await consoleOf(textOf(userDataFor({ bundleUrl })), 'serving as');
    expect(said.match(/trying again: .*answers 503/g)).toHaveLength(2);
  });

  it('F56: needs no package registry: in an empty folder the bundle gets as far as its own first request', async () => {
    using folder = tempDir('crawlfleet-bundle-');
    const file = folder.file('crawl-api.mjs');
    writeFileSync(file, (await buildProgram()).bytes);
    const run = promisify(execFile)(process.execPath, [file], {
      cwd: folder.path,
      env: { PATH: '', HOME: folder.path },
    });
    await expect(run).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('STATE_DIRECTORY is not set') });
  });
});
