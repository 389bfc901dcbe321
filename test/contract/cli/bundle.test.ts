/** `orchestrator bundle` as a command, with the sandbox's bucket. Needs no registry if Node is the pinned one. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NODE_VERSION } from '../../../userdata/node-release.ts';
import { type CommandResult, runCommand } from '../../support/processes.ts';
import { clientsFor, type SandboxClients } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

const MAIN = fileURLToPath(new URL('../../../orchestrator/main.ts', import.meta.url));
const [HERE, THERE] = process.arch === 'arm64' ? ['t4g.nano', 't3.nano'] : ['t3.nano', 't4g.nano'];

describe('orchestrator bundle', () => {
  let folder: TempDir;
  let sandbox: TestSandbox;
  let clients: SandboxClients;
  beforeAll(async () => {
    folder = tempDir();
    sandbox = await startSandbox();
    clients = clientsFor(sandbox);
    const LocationConstraint = 'ap-northeast-1';
    await clients.s3.createBucket({ Bucket: 'fleet', CreateBucketConfiguration: { LocationConstraint } });
  });
  afterAll(async () => {
    clients?.destroy();
    await sandbox?.stop();
    folder?.remove();
  });

  function run(aws: Record<string, unknown>, ...args: string[]): Promise<CommandResult> {
    const config = {
      site: { product_url: 'https://shop.example/{id}', mapping: { fields: { title: 'h1' } } },
      products: { query: 'select 1 as id' },
      database: { url: 'sqlite:./fleet.db' },
      aws: { region: 'ap-northeast-1', bucket: 'fleet', endpoint: sandbox.endpoint, ...aws },
    };
    writeFileSync(folder.file('fleet.yaml'), JSON.stringify(config));
    return runCommand(process.execPath, [MAIN, 'bundle', ...args], { cwd: folder.path });
  }

  it('writes the archive, and uploads it to the bucket once', { tags: ['nightly'] }, async () => {
    const args = ['--upload', '--out', 'b.tar.gz', '--json'];
    const first = await run({ instance_types: [HERE] }, ...args);
    expect(first.exitCode, first.stderr).toBe(0);
    const { bundles } = JSON.parse(first.stdout) as { bundles: Record<string, unknown>[] };
    const bytes = readFileSync(folder.file('b.tar.gz'));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const key = `bundles/${sha256}.tar.gz`;
    expect(bundles).toEqual([
      {
        architecture: process.arch === 'arm64' ? 'arm64' : 'x86_64',
        platform: `linux-${process.arch}`,
        nodeVersion: NODE_VERSION,
        sha256,
        sizeBytes: bytes.length,
        contents: [
          { name: 'crawl-api.mjs', sizeBytes: expect.any(Number) },
          { name: 'node', sizeBytes: expect.any(Number) },
        ],
        key,
        path: expect.stringMatching('/b.tar.gz$'),
        upload: { bucket: 'fleet', result: 'created' },
      },
    ]);
    const object = await clients.s3.getObject({ Bucket: 'fleet', Key: key });
    expect(
      createHash('sha256')
        .update(await object.Body!.transformToByteArray())
        .digest('hex'),
    ).toBe(sha256);
    const list = execFileSync('tar', ['-tzf', folder.file('b.tar.gz')], { encoding: 'utf8' });
    expect(list).toBe('crawl-api.mjs\nnode\n');

    const second = await run({ instance_types: [HERE] }, '--upload');
    expect(second.exitCode, second.stderr).toBe(0);
    expect(second.stdout).toContain(`${sha256}\n`);
    expect(second.stdout).toContain('already there');
    // The cache contains one file; the command did not download it.
    const cache = folder.file('.crawlfleet', 'cache');
    expect(readdirSync(cache)).toHaveLength(1);
    expect(statSync(join(cache, readdirSync(cache)[0]!)).size).toBeGreaterThan(10_000_000);
  });

  it.each([
    ['a file for two architectures', { instance_types: [HERE, THERE] }, ['--out', 'b'], [2, '--architecture']],
    ['an architecture that no type has', { instance_types: ['t3.nano'] }, ['--architecture', 'arm64'], [2, 'arm64']],
    ['an upload to no bucket', { bucket: null }, ['--upload'], [4, 'aws.bucket']],
  ])('refuses %s before it builds anything', async (_what, aws, args, [exitCode, says]) => {
    const result = await run(aws, ...args);
    expect(result).toMatchObject({ exitCode, stdout: '' });
    expect(result.stderr).toContain(says);
  });

  it('refuses a bundle and a document on stdout', async () => {
    const result = await run({ instance_types: [HERE] }, '--out', '-', '--json');
    expect([result.exitCode, JSON.parse(result.stdout)]).toEqual([2, expect.objectContaining({ exitCode: 2 })]);
  });

  it('writes the archive, and nothing else, to stdout', { tags: ['nightly'] }, async () => {
    await run({ instance_types: [HERE] }, '--out', 'b.tar.gz');
    const script = `"$0" "$1" bundle --out - > piped.tar.gz`;
    const result = await runCommand('sh', ['-c', script, process.execPath, MAIN], { cwd: folder.path });
    expect(result.exitCode, result.stderr).toBe(0);
    expect(result.stderr).toContain('Bundle for ');
    expect(readFileSync(folder.file('piped.tar.gz')).equals(readFileSync(folder.file('b.tar.gz')))).toBe(true);
    expect(existsSync(folder.file('-'))).toBe(false);
  });

  it('names the bucket that refuses the upload', { tags: ['nightly'] }, async () => {
    const result = await run({ instance_types: [HERE], bucket: 'absent' }, '--upload');
    expect(result.exitCode).not.toBe(0);
    expect(result.stderr).toContain('putting the bundle into absent');
    expect(result.stdout).toBe('');
  });
});
