/** What making an image takes of EC2, in our own words. */
import type { CloudState } from './compute.ts';
import type { ImageArchitecture, OwnImage } from './image-lookup.ts';

export interface BuilderRequest {
  clientToken: string;
  imageId: string;
  instanceType: string;
  subnetId: string;
  securityGroupIds: string[];
  userData: string;
  /** On the instance and its disk from the first moment. */
  tags: Record<string, string>;
}

export interface ImageCloud {
  /** The image to build on: the given one, or the newest Debian 13. Throws an AppError when there is none. */
  baseImage(id: string | null, architecture: ImageArchitecture): Promise<string>;
  /** Starts a machine that stops, and does not vanish, when it powers itself off. Its id. */
  launchBuilder(request: BuilderRequest): Promise<string>;
  /** Null when EC2 does not show it (yet). */
  builderState(instanceId: string): Promise<CloudState | null>;
  /** Null when there is none yet. */
  console(instanceId: string): Promise<string | null>;
  /** Begins to make an image of a stopped machine. Its id. */
  createImage(request: {
    instanceId: string;
    name: string;
    description: string;
    tags: Record<string, string>;
  }): Promise<string>;
  /** `pending`, `available`, `failed` …; null when EC2 does not show it (yet). */
  imageState(imageId: string): Promise<string | null>;
  /** One that is gone already counts as done. */
  terminate(instanceId: string): Promise<void>;
  /** The account's own images that this command has made, the newest first. */
  ownImages(): Promise<OwnImage[]>;
  /** Removes an image and the copies of disks that it is made of. */
  removeImage(image: Pick<OwnImage, 'id' | 'snapshots'>): Promise<void>;
}
