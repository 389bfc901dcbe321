/** `orchestrator image` as a real process against the sandbox, up to the point where a machine would run the recipe. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TAG } from '../../../../orchestrator/core/cloud/compute.ts';
import { Ec2Compute } from '../../../../orchestrator/core/cloud/ec2-compute.ts';
import { Ec2Images } from '../../../../orchestrator/features/image/image-ec2.ts';
import { IMAGE_TAG } from '../../../../orchestrator/core/cloud/image-lookup.ts';
import { imageRecipe } from '../../../../userdata/image-recipe.ts';
import { runCommand, type RunningCommand, startCommand, waitFor } from '../../../support/processes.ts';
import { startSandbox } from '../../../support/sandbox/start-sandbox.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

const MAIN = fileURLToPath(new URL('../../../../orchestrator/main.ts', import.meta.url));

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
    expect(JSON.parse(stdout)).toEqual({ images: [], exitCode: 0 });
  });

  it('lists and prunes in each of aws.regions', { tags: ['nightly'] }, async () => {
    const { endpoint } = sandbox;
    const regions = [sandbox.region, 'eu-central-1', 'us-east-1'];
    const [first, ...others] = regions.map(
      (region) => new Ec2Images({ region, endpoint, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } }),
    );
    const [subnet] = await compute.subnets([]);
    const instanceId = await first!.launchBuilder({
      clientToken: 'builder',
      imageId: await first!.baseImage(null, 'arm64'),
      instanceType: 't4g.small',
      subnetId: subnet!.id,
      securityGroupIds: await compute.securityGroups([], subnet!.vpcId),
      userData: '#!/bin/bash\n',
      tags: {},
    });
    await waitFor(async () => (await first!.builderState(instanceId)) === 'running', { what: 'the builder' });
    const labels = (name: string) => ({
      name,
      description: '',
      tags: { [IMAGE_TAG]: 'browser', [TAG.owner]: 'me' },
    });
    const made: string[][] = [];
    for (const name of ['old', 'new']) {
      const imageId = await first!.createImage({ instanceId, ...labels(name) });
      await waitFor(async () => (await first!.imageState(imageId)) === 'available', { what: 'the image' });
      const source = { region: sandbox.region, imageId };
      const copies = await Promise.all(others.map((there) => there.copyImage(source, labels(name))));
      await waitFor(
        async () =>
          (await Promise.all(others.map((there, i) => there.imageState(copies[i]!)))).every((s) => s === 'available'),
        { what: 'the copies' },
      );
      made.push([imageId, ...copies]);
    }
    await first!.terminate(instanceId);
    const [old, newest] = made as [string[], string[]];
    const config = readFileSync(folder.file('fleet.yaml'), 'utf8').replace(
      `region: ${sandbox.region}`,
      `regions: [{ region: ${regions[0]} }, { region: ${regions[1]} }, { region: ${regions[2]}, image: ${old[2]} }]`,
    );
    writeFileSync(folder.file('regions.yaml'), config);
    // An empty database: no run needs an image.
    writeFileSync(folder.file('fleet.db'), '');
    const image = async (...flags: string[]) => {
      const { stdout, stderr, exitCode } = await runCommand(process.execPath, [
        MAIN,
        'image',
        '-c',
        folder.file('regions.yaml'),
        '--json',
        ...flags,
      ]);
      expect(stdout, stderr).not.toBe('');
      const document = JSON.parse(stdout) as { exitCode: number; images: { id: string; region: string }[] };
      expect(document.exitCode).toBe(exitCode);
      return { document, stderr };
    };
    const list = async () => (await image('--list')).document.images.map((i) => [i.region, i.id]);
    const all = regions.flatMap((region, i) => [newest, old].map((ids) => [region, ids[i]]));
    expect(await list()).toEqual(all);

    await sandbox.control('PATCH', 'conditions', { outages: ['eu-central-1'] });
    const out = {
      error: { code: 'aws-failed', message: expect.stringMatching(/^eu-central-1: DescribeImages/) as string },
      exitCode: 1,
    };
    const listed = await image('--list');
    expect(listed.document).toMatchObject(out);
    expect(listed.document.images.map((i) => [i.region, i.id])).toEqual(
      all.filter(([region]) => region !== 'eu-central-1'),
    );
    expect(listed.stderr).toContain('! eu-central-1: DescribeImages');
    const partly = await image('--prune', '--yes');
    expect(partly.document).toMatchObject({ removed: [old[0]], kept: [{ id: old[2] }], ...out });
    expect(partly.stderr).toContain('! eu-central-1: DescribeImages');
    expect(partly.stderr).toContain(`removed ${sandbox.region} ${old[0]}`);
    expect(partly.stderr).toContain(`us-east-1 ${old[2]} is kept`);
    await sandbox.control('PATCH', 'conditions', { outages: [] });

    const denied = { what: 'error', action: 'DeregisterImage', code: 'UnauthorizedOperation', status: 403, count: 1 };
    await sandbox.control('POST', 'faults', [denied]);
    const refused = await image('--prune', '--yes');
    expect(refused.document).toMatchObject({
      removed: [],
      refused: [{ id: old[1] }],
      error: { code: 'aws-failed', message: `eu-central-1 ${old[1]} could not be removed` },
      exitCode: 1,
    });
    expect(refused.stderr).toContain('setup --image');

    const { document } = await image('--prune', '--yes');
    expect(document).toMatchObject({ removed: [old[1]], refused: [], kept: [{ id: old[2] }], exitCode: 0 });
    expect((await list()).map(([, id]) => id)).toEqual([newest[0], newest[1], newest[2], old[2]]);
    await Promise.all(
      [first!, ...others].map(async (images) => {
        for (const own of await images.ownImages()) await images.removeImage(own);
        images[Symbol.dispose]();
      }),
    );
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
