/** Making images on EC2 through the SDK. */
import type { EC2, CreateImageCommandOutput } from '@aws-sdk/client-ec2';
import { AppError } from '../../../shared/domain/errors.ts';
import { classifyAwsError } from '../../core/cloud/aws-errors.ts';
import type { CloudState, VolumeSettings } from '../../core/cloud/compute.ts';
import { Ec2Compute, runInstancesInput } from '../../core/cloud/ec2-compute.ts';
import {
  findDebianImage,
  type ImageArchitecture,
  listOwnImages,
  type OwnImage,
} from '../../core/cloud/image-lookup.ts';
import { type AwsOptions, AwsService, lazyEc2, tagList } from '../../core/cloud/sdk-clients.ts';

export interface BuilderRequest {
  clientToken: string;
  imageId: string;
  instanceType: string;
  subnetId: string;
  securityGroupIds: string[];
  userData: string;
  volume?: VolumeSettings;
  /** The tags set on the instance and its disk at launch. */
  tags: Record<string, string>;
}

/** How an image and its snapshot are named and tagged: in each region alike. */
export interface ImageLabels {
  name: string;
  description: string;
  tags: Record<string, string>;
}

/** What makes and removes images, for tests and for callers that do not close it. */
export type ImageCloud = Omit<Ec2Images, typeof Symbol.dispose>;

export class Ec2Images {
  readonly #ec2: AwsService<EC2>;
  readonly #compute: Ec2Compute;

  /** Makes no call and loads no SDK yet. */
  constructor(options: AwsOptions) {
    this.#ec2 = new AwsService(lazyEc2, options);
    this.#compute = new Ec2Compute(options);
  }

  [Symbol.dispose](): void {
    this.#ec2.close();
    this.#compute.close();
  }

  /** The image to build on: the given one, or the newest Debian 13. Throws an AppError when there is none. */
  async baseImage(id: string | null, architecture: ImageArchitecture): Promise<string> {
    if (id !== null) return this.#compute.image(id, architecture);
    const found = await this.#ec2.call('DescribeImages', (ec2) => findDebianImage(ec2, architecture));
    if (found !== null) return found;
    throw new AppError('aws-invalid', `EC2 shows no Debian 13 image for ${architecture} in this region`, {
      hint: 'Name one with --base: any image of Debian 13 with cloud-init.',
    });
  }

  /** Starts a machine that stops, rather than terminates, when it powers itself off. Returns its id. */
  async launchBuilder(request: BuilderRequest): Promise<string> {
    const reply = await this.#ec2.call('RunInstances', async (ec2) =>
      ec2.runInstances({
        ...(await runInstancesInput(ec2, { ...request, instanceProfile: null })),
        // Its disk is what the image is made of.
        InstanceInitiatedShutdownBehavior: 'stop',
      }),
    );
    const id = reply.Instances?.[0]?.InstanceId;
    if (id === undefined) throw new AppError('aws-failed', 'RunInstances answered without an instance');
    return id;
  }

  /** The builder's state; null when EC2 does not show it (yet). */
  async builderState(instanceId: string): Promise<CloudState | null> {
    const reply = await this.#ec2.unless('not-found', 'DescribeInstances', (ec2) =>
      ec2.describeInstances({ InstanceIds: [instanceId] }),
    );
    return reply?.Reservations?.flatMap((r) => r.Instances ?? [])[0]?.State?.Name ?? null;
  }

  /** The builder's console output; null when there is none yet. */
  console(instanceId: string): Promise<string | null> {
    return this.#compute.consoleOutput(instanceId);
  }

  /** Starts making an image of a stopped machine. Returns its id. */
  async createImage(request: ImageLabels & { instanceId: string }): Promise<string> {
    const Tags = tagList(request.tags);
    const ask = (ec2: EC2, tagged: readonly ('image' | 'snapshot')[]): Promise<CreateImageCommandOutput> =>
      ec2.createImage({
        InstanceId: request.instanceId,
        Name: request.name,
        Description: request.description,
        // The machine is already stopped.
        NoReboot: true,
        TagSpecifications: tagged.map((ResourceType) => ({ ResourceType, Tags })),
      });
    const reply = await this.#ec2.call('CreateImage', async (ec2) => {
      try {
        return await ask(ec2, ['image', 'snapshot']);
      } catch (error) {
        // moto cannot tag the snapshot; without a tag it is only harder to find.
        if (this.#ec2.endpoint === null || classifyAwsError(error).kind !== 'capability-missing') throw error;
        return ask(ec2, ['image']);
      }
    });
    if (!reply.ImageId) throw new AppError('aws-failed', 'CreateImage answered without an image');
    return reply.ImageId;
  }

  /**
   * Starts copying an available image of another region to this one. An encrypted snapshot stays encrypted. Returns the
   * copy's id.
   */
  async copyImage(source: { region: string; imageId: string }, labels: ImageLabels): Promise<string> {
    const Tags = tagList(labels.tags);
    const reply = await this.#ec2.call('CopyImage', (ec2) =>
      ec2.copyImage({
        // The name is unique: a repeated call must not copy twice.
        ClientToken: labels.name,
        SourceRegion: source.region,
        SourceImageId: source.imageId,
        Name: labels.name,
        Description: labels.description,
        TagSpecifications: (['image', 'snapshot'] as const).map((ResourceType) => ({ ResourceType, Tags })),
      }),
    );
    if (!reply.ImageId) throw new AppError('aws-failed', 'CopyImage answered without an image');
    return reply.ImageId;
  }

  /** `pending`, `available`, `failed` …; null when EC2 does not show it (yet). */
  async imageState(imageId: string): Promise<string | null> {
    const reply = await this.#ec2.unless('not-found', 'DescribeImages', (ec2) =>
      ec2.describeImages({ ImageIds: [imageId] }),
    );
    const image = reply?.Images?.find((i) => i.ImageId === imageId);
    return image === undefined ? null : (image.State ?? 'available');
  }

  /** A machine that is already gone counts as done. */
  terminate(instanceId: string): Promise<void> {
    return this.#compute.terminate([instanceId]);
  }

  /** The account's images that this command has made, newest first. */
  ownImages(): Promise<OwnImage[]> {
    return this.#ec2.call('DescribeImages', listOwnImages);
  }

  /** Removes an image and its snapshots. */
  async removeImage({ id, snapshots }: Pick<OwnImage, 'id' | 'snapshots'>): Promise<void> {
    await this.#ec2.unless('not-found', `DeregisterImage ${id}`, (ec2) => ec2.deregisterImage({ ImageId: id }));
    // Only now: a snapshot cannot be deleted while an image uses it.
    for (const SnapshotId of snapshots)
      await this.#ec2.unless('not-found', `DeleteSnapshot ${SnapshotId}`, (ec2) => ec2.deleteSnapshot({ SnapshotId }));
  }
}
