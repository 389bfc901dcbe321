/** What EC2 shows about an image, for the check before a run. */
import type { Image } from '@aws-sdk/client-ec2';
import { toAppError } from './aws-errors.ts';
import type { AwsOptions } from './sdk-clients.ts';
import { lazyEc2 } from './sdk-clients.ts';

export interface ImageFacts {
  id: string;
  name: string;
  /** The owner's account. */
  ownerId: string;
  /** `amazon`, `aws-marketplace` or `self`; null for other accounts. */
  ownerAlias: string | null;
  architecture: string;
  /** `available` when it can be launched. */
  state: string;
  tags: Record<string, string>;
  /** Device names of volumes that remain, and are billed, after an instance terminates. */
  keptVolumes: string[];
}

/** Null when EC2 does not show it. Throws the AppError of a refused call. */
export async function readImage(options: AwsOptions, id: string): Promise<ImageFacts | null> {
  const lazy = lazyEc2(options);
  try {
    const { sdk, client } = await lazy.get();
    const reply = await client.send(new sdk.DescribeImagesCommand({ ImageIds: [id] }));
    return toFacts(reply.Images?.find((image) => image.ImageId === id));
  } catch (error) {
    throw toAppError(error, 'DescribeImages', options.endpoint);
  } finally {
    lazy.close();
  }
}

function toFacts(image: Image | undefined): ImageFacts | null {
  if (!image?.ImageId) return null;
  const tags = (image.Tags ?? []).flatMap((t) => (t.Key === undefined ? [] : [[t.Key, t.Value ?? ''] as const]));
  return {
    id: image.ImageId,
    name: image.Name ?? '',
    ownerId: image.OwnerId ?? '',
    ownerAlias: image.ImageOwnerAlias ?? null,
    architecture: image.Architecture ?? 'unknown',
    state: image.State ?? 'available',
    tags: Object.fromEntries(tags),
    keptVolumes: (image.BlockDeviceMappings ?? []).flatMap(({ DeviceName, Ebs }) =>
      Ebs?.DeleteOnTermination === false ? [DeviceName ?? 'a volume'] : [],
    ),
  };
}
