/** Whether an image has, or can get, the browser that a boot needs, judged by its name, owner and tags. Pure. */
import type { ImageFacts } from './image-facts.ts';
import { BROWSER_IMAGE, DEBIAN_OWNER, IMAGE_TAG } from './image-lookup.ts';

/**
 * ready    made by `orchestrator image`, or by Packer with its recipe: has Chromium
 * debian   Debian's own: boot installs Chromium
 * lacking  a stock image of a system without a Chromium package: boot gives up
 * unknown  a custom image: only its maker knows
 */
export type BrowserOnImage = 'ready' | 'debian' | 'lacking' | 'unknown';

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
