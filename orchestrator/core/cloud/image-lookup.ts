/** Which image a machine with a browser boots from: the account's own with Chromium, else Debian's. */
import type { EC2, Image } from '@aws-sdk/client-ec2';
import { TAG } from './compute.ts';

export type ImageArchitecture = 'x86_64' | 'arm64';

/** Tag on every image that `orchestrator image` makes; the value is its purpose. */
export const IMAGE_TAG = 'crawlfleet:image';
export const BROWSER_IMAGE = 'browser';
/** Tag for the version of Chromium on it. */
export const CHROMIUM_TAG = 'crawlfleet:chromium';

/** Debian's own account, the same in every commercial region. https://wiki.debian.org/Cloud/AmazonEC2Image */
export const DEBIAN_OWNER = '136693071363';
const DEBIAN_NAME: Record<ImageArchitecture, string> = { x86_64: 'debian-13-amd64-', arm64: 'debian-13-arm64-' };

export interface OwnImage {
  id: string;
  name: string;
  architecture: string;
  /** `available` when it can be launched. */
  state: string;
  createdAt: string;
  /** The owner; null when the image names none. */
  owner: string | null;
  chromium: string | null;
  snapshots: string[];
}

/** Images of this account that `orchestrator image` has made, newest first. Throws what the SDK throws. */
export async function listOwnImages(ec2: EC2): Promise<OwnImage[]> {
  const Filters = [{ Name: `tag:${IMAGE_TAG}`, Values: [BROWSER_IMAGE] }];
  const reply = await ec2.describeImages({ Owners: ['self'], Filters });
  // Checked again here: some endpoints ignore unknown filters.
  const own = (reply.Images ?? []).filter((image) => tagOf(image, IMAGE_TAG) === BROWSER_IMAGE);
  return newestFirst(own).map((image) => ({
    id: image.ImageId,
    name: image.Name ?? '',
    architecture: image.Architecture ?? 'unknown',
    state: image.State ?? 'available',
    createdAt: image.CreationDate ?? '',
    owner: tagOf(image, TAG.owner),
    chromium: tagOf(image, CHROMIUM_TAG),
    snapshots: (image.BlockDeviceMappings ?? []).flatMap((m) => m.Ebs?.SnapshotId ?? []),
  }));
}

/** The newest Debian 13 for this architecture; null where the endpoint shows none. */
export async function findDebianImage(ec2: EC2, architecture: ImageArchitecture): Promise<string | null> {
  const prefix = DEBIAN_NAME[architecture];
  const Filters = [
    { Name: 'name', Values: [`${prefix}*`] },
    { Name: 'state', Values: ['available'] },
  ];
  const reply = await ec2.describeImages({ Owners: [DEBIAN_OWNER], Filters });
  const fitting = (reply.Images ?? []).filter(
    (image) => image.Architecture === architecture && image.OwnerId === DEBIAN_OWNER && image.Name?.startsWith(prefix),
  );
  return newestFirst(fitting)[0]?.ImageId ?? null;
}

/** The account's newest image for browsers, else the newest Debian 13; null where there is neither. */
export async function findBrowserImage(ec2: EC2, architecture: ImageArchitecture): Promise<string | null> {
  const own = await listOwnImages(ec2);
  const prepared = own.find((image) => image.architecture === architecture && image.state === 'available');
  return prepared?.id ?? findDebianImage(ec2, architecture);
}

export function newestFirst(images: readonly Image[]): (Image & { ImageId: string })[] {
  return images
    .flatMap((image) => (image.ImageId === undefined ? [] : [{ ...image, ImageId: image.ImageId }]))
    .sort((a, b) => compare(b.CreationDate ?? '', a.CreationDate ?? '') || compare(a.ImageId, b.ImageId));
}

const tagOf = (image: Image, key: string): string | null => image.Tags?.find((t) => t.Key === key)?.Value ?? null;

export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
