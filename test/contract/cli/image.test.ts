/** `orchestrator image` as a real process against the sandbox, up to the point where a machine would run the recipe. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TAG } from '../../../orchestrator/cloud/compute.ts';
import { Ec2Compute } from '../../../orchestrator/cloud/ec2-compute.ts';
import { imageRecipe } from '../../../userdata/image-recipe.ts';
import { runCommand, type RunningCommand, startCommand, waitFor } from '../../support/processes.ts';
import { startSandbox } from '../../support/sandbox/start-sandbox.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

const MAIN = fileURLToPath(new URL('../../../orchestrator/main.ts', import.meta.url));

describe('orchestrator image', () => {
  let sandbox: Awaited<ReturnType<typeof startSandbox>>;
  let compute: Ec2Compute;
  let folder: TempDir;
  let command: RunningCommand | null = null;

  beforeAll(async () => {
    sandbox = await startSandbox();
    const { region, endpoint } = sandbox;
    compute = new Ec2Compute({ region, endpoint, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } });
    folder = tempDir();
    writeFileSync(
      folder.file('fleet.yaml'),
      `site: { product_url: "https://shop.example/{id}", render: browser, mapping: { fields: { title: h1 } } }
products: { query: "select 1" }
database: { url: "sqlite:fleet.db" }
results: { table: products }
aws: { region: ${region}, endpoint: "${endpoint}", owner: me, instance_types: [t4g.nano, t3.small] }
`,
    );
  });
  afterEach(async () => {
    command?.kill('SIGKILL');
    await command?.finished;
    command = null;
  });
  afterAll(async () => {
    compute?.close();
    folder?.remove();
    await sandbox?.stop();
  });

  const args = (...flags: string[]): string[] => [MAIN, 'image', '-c', folder.file('fleet.yaml'), ...flags];

  it('terminates the builder at Ctrl-C, and makes no image', async () => {
    const making = startCommand(process.execPath, args('--yes'));
    command = making;
    const builder = await waitFor(
      async () =>
        (await compute.list({ key: TAG.owner, value: 'me' })).find(({ state }) => state === 'running') ?? null,
      { what: `the builder (${making.stdout()}${making.stderr()})` },
    );
    expect(builder.tags).toMatchObject({
      'crawlfleet:purpose': 'image',
      [TAG.run]: expect.stringMatching(/^image-/) as string,
    });
    // The first type that can run a browser.
    expect(builder.instanceType).toBe('t3.small');
    await waitFor(() => making.stdout().includes(builder.id), { what: 'what it is doing' });
    making.kill('SIGINT');
    expect((await making.finished).exitCode).toBe(11);
    const [left] = await compute.list({ key: TAG.owner, value: 'me' });
    expect(['shutting-down', 'terminated']).toContain(left?.state ?? 'terminated');
    const { stdout } = await runCommand(process.execPath, args('--list', '--json'));
    expect(JSON.parse(stdout)).toEqual({ images: [] });
  });

  it('asks for confirmation before it spends money', async () => {
    const { exitCode, stderr } = await runCommand(process.execPath, args());
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--yes');
  });

  it('prints the recipe without a call', async () => {
    const { stdout } = await runCommand(process.execPath, args('--print', 'recipe'));
    expect(stdout.trim()).toBe(imageRecipe({ powerOff: false }).trim());
  });
});
