/** What EC2 shows about an image, for the check before a run. */
import type { Image } from '@aws-sdk/client-ec2';
import { type AwsOptions, callOnce, lazyEc2, tagRecord } from './sdk-clients.ts';

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
export function readImage(options: AwsOptions, id: string): Promise<ImageFacts | null> {
  return callOnce(lazyEc2, options, 'DescribeImages', async (ec2) => {
    const reply = await ec2.describeImages({ ImageIds: [id] });
    return toFacts(reply.Images?.find((image) => image.ImageId === id));
  });
}

function toFacts(image: Image | undefined): ImageFacts | null {
  if (!image?.ImageId) return null;
  return {
    id: image.ImageId,
    name: image.Name ?? '',
    ownerId: image.OwnerId ?? '',
    ownerAlias: image.ImageOwnerAlias ?? null,
    architecture: image.Architecture ?? 'unknown',
    state: image.State ?? 'available',
    tags: tagRecord(image.Tags),
    keptVolumes: (image.BlockDeviceMappings ?? []).flatMap(({ DeviceName, Ebs }) =>
      Ebs?.DeleteOnTermination === false ? [DeviceName ?? 'a volume'] : [],
    ),
  };
}
