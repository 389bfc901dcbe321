/** What EC2 shows about an image, and whether it has, or can get, the browser that a boot needs. */
import type { Image } from '@aws-sdk/client-ec2';
import { type AwsOptions, callOnce, lazyEc2, tagRecord } from './sdk-clients.ts';
import { BROWSER_IMAGE, DEBIAN_OWNER, IMAGE_TAG } from './image-lookup.ts';

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

/** Reads what EC2 says of an image; null when it does not show it. Throws the AppError of a refused call. */
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

/**
 * ready    made by `orchestrator image`, or by Packer with its recipe: has Chromium
 * debian   Debian's own: boot installs Chromium
 * lacking  a stock image of a system without a Chromium package: boot gives up
 * unknown  a custom image: only its maker knows
 */
type BrowserOnImage = 'ready' | 'debian' | 'lacking' | 'unknown';

/**
 * Names of stock images, with their owner's account in the commercial regions. Where EC2 vouches for the owner it shows
 * an alias, which is the same in the other partitions.
 */
const STOCK: readonly { name: RegExp; owner: string; holds: BrowserOnImage }[] = [
  // https://wiki.debian.org/Cloud/AmazonEC2Image
  { name: /^debian-\d/, owner: DEBIAN_OWNER, holds: 'debian' },
  // https://docs.aws.amazon.com/linux/al2023/ug/naming-and-versioning.html
  { name: /^(al20\d\d-ami-|amzn2-ami-)/, owner: '137112412989', holds: 'lacking' },
  // https://documentation.ubuntu.com/aws/aws-how-to/instances/find-ubuntu-images/
  { name: /^ubuntu(-pro|-minimal)?\/images/, owner: '099720109477', holds: 'lacking' },
];

export function browserOn({ name, tags, ownerId, ownerAlias }: ImageFacts): BrowserOnImage {
  if (tags[IMAGE_TAG] === BROWSER_IMAGE) return 'ready';
  const stock = STOCK.find((s) => s.name.test(name) && (ownerId === s.owner || ownerAlias === 'amazon'));
  return stock?.holds ?? 'unknown';
}
