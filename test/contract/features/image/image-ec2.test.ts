/** Making and finding images through the SDK: against the sandbox, and against moto if it is on PATH. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TAG } from '../../../../orchestrator/core/cloud/compute.ts';
import { Ec2Compute } from '../../../../orchestrator/core/cloud/ec2-compute.ts';
import { Ec2Images } from '../../../../orchestrator/features/image/image-ec2.ts';
import { CHROMIUM_TAG, IMAGE_TAG } from '../../../../orchestrator/core/cloud/image-lookup.ts';
import type { AwsOptions } from '../../../../orchestrator/core/cloud/sdk-clients.ts';
import { findMotoServer, sayMotoIsMissing, startMotoServer } from '../../../support/endpoints/moto-server.ts';
import { startSandbox } from '../../../support/sandbox/start-sandbox.ts';
import { clientsFor, eventually } from '../../../support/sandbox/clients.ts';

interface Place {
  endpoint: string;
  region: string;
  stop(): Promise<unknown>;
}

const moto = await findMotoServer();
if (moto === null) sayMotoIsMissing('making an image');
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const NOWHERE = 'ami-0123456789abcdef0';

const PLACES: [string, (() => Promise<Place>) | null, object][] = [
  ['the sandbox', startSandbox, {}],
  [
    'moto',
    moto === null ? null : async () => ({ ...(await startMotoServer(moto)), region: 'us-east-1' }),
    { tags: ['nightly'] },
  ],
];

describe.each(PLACES)('images at %s', (name, start, options) => {
  describe.runIf(start !== null)('with the account at its disposal', options, () => {
    let place: Place;
    let images: Ec2Images;
    let compute: Ec2Compute;

    beforeAll(async () => {
      place = await start!();
      const options: AwsOptions = { region: place.region, endpoint: place.endpoint, credentials };
      images = new Ec2Images(options);
      compute = new Ec2Compute(options);
    });
    afterAll(async () => {
      images?.[Symbol.dispose]();
      compute?.close();
      await place?.stop();
    });

    async function launchBuilder(baseImageId: string, word: string): Promise<string> {
      const [subnet] = await compute.subnets([]);
      const id = await images.launchBuilder({
        clientToken: `image-${word}`,
        imageId: baseImageId,
        instanceType: 't4g.small',
        subnetId: subnet!.id,
        securityGroupIds: await compute.securityGroups([], subnet!.vpcId),
        userData: '#!/bin/bash\n',
        tags: { [TAG.owner]: 'me', [TAG.run]: `image-${word}`, 'crawlfleet:purpose': 'image' },
      });
      await eventually('the builder', async () => ((await images.builderState(id)) === 'running' ? id : null));
      return id;
    }

    const base = (): Promise<string> =>
      // moto has no Debian 13; the base image does not matter here.
      name === 'moto' ? compute.image(null, 'arm64') : images.baseImage(null, 'arm64');

    async function make(word: string): Promise<string> {
      const instanceId = await launchBuilder(await base(), word);
      const tags = { [TAG.owner]: 'me', [IMAGE_TAG]: 'browser', [CHROMIUM_TAG]: '156.0' };
      const id = await images.createImage({ instanceId, name: `image ${word}`, description: 'a test', tags });
      await eventually('the image', async () => ((await images.imageState(id)) === 'available' ? id : null));
      await images.terminate(instanceId);
      return id;
    }

    it('makes an image, which browsers boot from and others do not, and removes it with its snapshot', async () => {
      expect(await images.ownImages()).toEqual([]);
      const before = await compute.image(null, 'arm64', 'browser');
      const id = await make('one');
      const [own, ...others] = await images.ownImages();
      expect(others).toEqual([]);
      expect(own).toMatchObject({
        id,
        name: 'image one',
        architecture: 'arm64',
        state: 'available',
        chromium: '156.0',
      });
      expect(own!.snapshots).toHaveLength(1);
      expect(await compute.image(null, 'arm64', 'browser')).toBe(id);
      expect(await compute.image(null, 'arm64')).not.toBe(id);
      expect(await compute.image(id, 'arm64', 'browser')).toBe(id);

      await images.removeImage(own!);
      // A second removal is harmless.
      await images.removeImage(own!);
      expect(await images.ownImages()).toEqual([]);
      expect(await compute.image(null, 'arm64', 'browser')).toBe(before);
    });

    it('copies an image to another region, where runs with a browser boot it', async () => {
      const id = await make('copied');
      const options: AwsOptions = { region: 'eu-central-1', endpoint: place.endpoint, credentials };
      const there = { images: new Ec2Images(options), compute: new Ec2Compute(options) };
      const tags = { [TAG.owner]: 'me', [IMAGE_TAG]: 'browser', [CHROMIUM_TAG]: '156.0' };
      const copyAs = (description: string) =>
        there.images.copyImage({ region: place.region, imageId: id }, { name: 'image copied', description, tags });
      const copy = await copyAs('a test');
      expect(copy).not.toBe(id);
      // moto ignores client tokens.
      if (name !== 'moto') {
        expect(await copyAs('a test')).toBe(copy);
        await expect(copyAs('another')).rejects.toThrow(/IdempotentParameterMismatch/);
      }
      await eventually('the copy', async () => ((await there.images.imageState(copy)) === 'available' ? copy : null));
      expect(await images.imageState(copy)).toBeNull();
      // moto puts no tags on a copy.
      if (name !== 'moto') {
        const [own] = await there.images.ownImages();
        expect(own).toMatchObject({
          id: copy,
          name: 'image copied',
          architecture: 'arm64',
          owner: 'me',
          chromium: '156.0',
        });
        expect(await there.compute.image(null, 'arm64', 'browser')).toBe(copy);
        expect(await compute.image(null, 'arm64', 'browser')).toBe(id);
        const { ec2 } = clientsFor({ endpoint: place.endpoint, region: 'eu-central-1' });
        const { Tags } = await ec2.describeTags({ Filters: [{ Name: 'resource-id', Values: own!.snapshots }] });
        expect(Object.fromEntries(Tags!.map((tag) => [tag.Key, tag.Value]))).toEqual(tags);
        await there.images.removeImage(own!);
        expect(await there.images.ownImages()).toEqual([]);
      }
      await images.removeImage((await images.ownImages()).find((image) => image.id === id)!);
      there.images[Symbol.dispose]();
      there.compute.close();
    });

    it('uses the newest of its own images', async () => {
      await make('two');
      // On some endpoints image dates have a resolution of one second.
      await new Promise((resolve) => setTimeout(resolve, name === 'moto' ? 1_100 : 10));
      const newer = await make('three');
      expect(await compute.image(null, 'arm64', 'browser')).toBe(newer);
    });

    it('reports no state for an image that does not exist', async () => {
      expect(await images.imageState(NOWHERE)).toBeNull();
      expect(await images.builderState('i-0123456789abcdef0')).toBeNull();
    });
  });
});

describe('the image for browsers at the sandbox', () => {
  let sandbox: Awaited<ReturnType<typeof startSandbox>>;
  let images: Ec2Images;
  let compute: Ec2Compute;

  beforeAll(async () => {
    sandbox = await startSandbox();
    const options = { region: sandbox.region, endpoint: sandbox.endpoint, credentials };
    images = new Ec2Images(options);
    compute = new Ec2Compute(options);
  });
  afterAll(async () => {
    images?.[Symbol.dispose]();
    compute?.close();
    await sandbox?.stop();
  });

  it.each(['x86_64', 'arm64'] as const)('is Debian 13 where the account has none (%s)', async (architecture) => {
    const debian = await images.baseImage(null, architecture);
    expect(await compute.image(null, architecture, 'browser')).toBe(debian);
    expect(await compute.image(null, architecture, 'http')).not.toBe(debian);
  });

  it('stops a builder that powers itself off, and keeps it', async () => {
    const [subnet] = await compute.subnets([]);
    const id = await images.launchBuilder({
      clientToken: 'image-stop',
      imageId: await images.baseImage(null, 'arm64'),
      instanceType: 't4g.small',
      subnetId: subnet!.id,
      securityGroupIds: await compute.securityGroups([], subnet!.vpcId),
      userData: '#!/bin/bash\n',
      tags: { [TAG.owner]: 'me' },
    });
    await eventually('the builder', async () => ((await images.builderState(id)) === 'running' ? id : null));
    await sandbox.control('POST', `instances/${id}`, { do: 'stop' });
    await eventually('the stop', async () => ((await images.builderState(id)) === 'stopped' ? id : null));

    await sandbox.control('PATCH', 'conditions', { imagePendingMs: 600_000 });
    const order = { instanceId: id, name: 'twice', description: '', tags: { [IMAGE_TAG]: 'browser' } };
    const imageId = await images.createImage(order);
    expect(await images.imageState(imageId)).toBe('pending');
    const there = new Ec2Images({ region: 'eu-central-1', endpoint: sandbox.endpoint, credentials });
    const copyOf = (id: string) => there.copyImage({ region: sandbox.region, imageId: id }, order);
    await expect(copyOf(imageId)).rejects.toThrow(/InvalidAMIID.Unavailable/);
    await expect(copyOf(NOWHERE)).rejects.toThrow(/InvalidAMIID.NotFound/);
    there[Symbol.dispose]();
    // An image that is still being made is not booted from, and its name is taken.
    expect(await compute.image(null, 'arm64', 'browser')).toBe(await images.baseImage(null, 'arm64'));
    await expect(images.createImage(order)).rejects.toThrow(/InvalidAMIName.Duplicate/);
  });
});
