/** The port to EC2 for making an image. */
import type { CloudState } from './compute.ts';
import type { ImageArchitecture, OwnImage } from './image-lookup.ts';

export interface BuilderRequest {
  clientToken: string;
  imageId: string;
  instanceType: string;
  subnetId: string;
  securityGroupIds: string[];
  userData: string;
  /** Set on the instance and its disk at launch. */
  tags: Record<string, string>;
}

export interface ImageCloud {
  /** The image to build on: the given one, or the newest Debian 13. Throws an AppError when there is none. */
  baseImage(id: string | null, architecture: ImageArchitecture): Promise<string>;
  /** Starts a machine that stops, rather than terminates, when it powers itself off. Returns its id. */
  launchBuilder(request: BuilderRequest): Promise<string>;
  /** Null when EC2 does not show it (yet). */
  builderState(instanceId: string): Promise<CloudState | null>;
  /** Null when there is none yet. */
  console(instanceId: string): Promise<string | null>;
  /** Starts making an image of a stopped machine. Returns its id. */
  createImage(request: {
    instanceId: string;
    name: string;
    description: string;
    tags: Record<string, string>;
  }): Promise<string>;
  /** `pending`, `available`, `failed` …; null when EC2 does not show it (yet). */
  imageState(imageId: string): Promise<string | null>;
  /** A machine that is already gone counts as done. */
  terminate(instanceId: string): Promise<void>;
  /** The account's images that this command has made, newest first. */
  ownImages(): Promise<OwnImage[]>;
  /** Removes an image and its snapshots. */
  removeImage(image: Pick<OwnImage, 'id' | 'snapshots'>): Promise<void>;
}
