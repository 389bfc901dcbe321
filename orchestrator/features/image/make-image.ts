/**
 * Makes an image: a builder installs what the recipe says and stops, EC2 makes an image of its disk, and the builder is
 * terminated, whatever happens. A builder that a killed command leaves behind carries the tags by which gc ends it.
 * Other regions get copies of the image.
 */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { readyVersion, recipeFailure } from '../../../userdata/image-recipe.ts';
import { TAG } from '../../core/cloud/compute.ts';
import type { BuilderRequest, ImageCloud, ImageLabels } from './image-ec2.ts';
import { BROWSER_IMAGE, CHROMIUM_TAG, IMAGE_TAG } from '../../core/cloud/image-lookup.ts';

const POLL_MS = 10_000;
/** The time from the launch to the stop; the builder powers itself off ten minutes later. */
const BUILD_MS = 20 * 60_000;
/** EC2 shows the console's last lines some minutes after a stop. */
const CONSOLE_MS = 5 * 60_000;
const IMAGE_MS = 30 * 60_000;
const PROGRESS_MS = 60_000;
const TERMINATE_TRIES = 5;
const LOOK_TRIES = 6;
/** gc ends a forgotten builder when it is older than all of the above. */
const EXPIRES_MS = 90 * 60_000;
const CONSOLE_SHOWN = 1_500;

/** Owner and expiry, for gc; a builder belongs to a run that no database knows. */
const PURPOSE_TAG = 'crawlfleet:purpose';

/** Dependencies for polling EC2. */
interface Watch {
  cloud: ImageCloud;
  clock: Clock;
  /** Aborts when the user wants to leave; the builder is terminated first. */
  signal: AbortSignal;
  onProgress: (text: string) => void;
}

export interface ImageOrder extends Watch {
  owner: string;
  /** The user's own tags, for all that is made. */
  tags: Record<string, string>;
  builder: Pick<BuilderRequest, 'instanceType' | 'subnetId' | 'securityGroupIds' | 'userData' | 'volume'>;
  baseImageId: string;
  architecture: 'x86_64' | 'arm64';
}

export interface MadeImage {
  imageId: string;
  labels: ImageLabels;
  chromium: string;
}

/** Throws an AppError that names the failed step, with the end of the console when the recipe failed. */
export async function makeImage(order: ImageOrder): Promise<MadeImage> {
  const { cloud, clock, onProgress } = order;
  const startedAtMs = clock.now();
  const stamp = new Date(startedAtMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const instanceId = await cloud.launchBuilder({
    ...order.builder,
    imageId: order.baseImageId,
    clientToken: `crawlfleet-image-${stamp}-${order.architecture}`,
    tags: {
      ...order.tags,
      Name: `crawlfleet image ${stamp}`,
      [TAG.owner]: order.owner,
      [TAG.run]: `image-${stamp}`,
      [TAG.expiresAt]: new Date(startedAtMs + EXPIRES_MS).toISOString(),
      [PURPOSE_TAG]: 'image',
    },
  });
  onProgress(`builder ${instanceId} is installing Chromium and fonts; this takes about five minutes`);
  try {
    const chromium = await awaitBuilder(order, instanceId);
    const name = `crawlfleet-browser-${order.architecture}-${stamp}`;
    const labels = {
      name,
      description: `Debian 13 with Chromium ${chromium}, for crawlfleet; made from ${order.baseImageId}`,
      tags: {
        ...order.tags,
        Name: name,
        [TAG.owner]: order.owner,
        [IMAGE_TAG]: BROWSER_IMAGE,
        [CHROMIUM_TAG]: chromium,
      },
    };
    const imageId = await cloud.createImage({ instanceId, ...labels });
    onProgress(`image ${imageId} is being made; this takes some minutes`);
    await awaitImage(order, imageId);
    return { imageId, labels, chromium };
  } finally {
    await endBuilder(order, instanceId);
  }
}

export interface CopyOrder extends Omit<Watch, 'cloud'> {
  /** The region of the image. */
  from: string;
  image: Pick<MadeImage, 'imageId' | 'labels'>;
  to: readonly { region: string; cloud: ImageCloud }[];
}

export type Copy = { region: string } & ({ imageId: string } | { error: unknown });

/** Copies an image to other regions, all at once. Never throws: one region without a copy is no harm to the others. */
export function copyImage({ from, image, to, ...watch }: CopyOrder): Promise<Copy[]> {
  return Promise.all(
    to.map(async ({ region, cloud }) => {
      try {
        if (watch.signal.aborted) throw new AppError('interrupted', 'interrupted, no copy to this region was started');
        const imageId = await cloud.copyImage({ region: from, imageId: image.imageId }, image.labels);
        watch.onProgress(`image ${imageId} is being copied to ${region}; this takes some minutes`);
        await awaitImage({ ...watch, cloud }, imageId, region);
        return { region, imageId };
      } catch (error) {
        return { region, error };
      }
    }),
  );
}

/** The command's error when some regions have no copy; null when all have one. */
export function copyFailure(copies: readonly Copy[]): AppError | null {
  const failed = copies.flatMap((copy) => ('error' in copy ? [copy] : []));
  const regions = failed.map(({ region }) => region).join(', ');
  return joinErrors(
    failed.map(({ region, error }) => errorIn(region, error)),
    `The images of the other regions are kept. Until ${regions} ${failed.length === 1 ? 'has' : 'have'} a new image, runs there boot an older one, or Debian 13. To make one in every region: orchestrator image; to remove the older ones: orchestrator image --prune`,
  );
}

/** @param hasRegions whether the configuration has aws.regions, each with an image of its own */
export const howToPin = (images: readonly { region: string; imageId: string }[], hasRegions: boolean): string =>
  hasRegions
    ? [
        'To pin it, add to the entry of each region in aws.regions:',
        ...images.map(({ region, imageId }) => `  image: ${imageId}  # ${region}`),
      ].join('\n')
    : `To pin it:\n  aws:\n    image: ${images[0]!.imageId}`;

/** An error that names its region. */
export function errorIn(region: string, error: unknown): AppError {
  const { code, hint } = error instanceof AppError ? error : { code: 'internal' as const };
  return new AppError(code, `${region}: ${describeError(error)}`, hint === undefined ? {} : { hint });
}

/** One error for all: its code is theirs if they agree, and `interrupted` if one was. Null when there are none. */
export function joinErrors(errors: readonly AppError[], ...advice: string[]): AppError | null {
  if (errors.length === 0) return null;
  const codes = new Set(errors.map(({ code }) => code));
  const [common = 'aws-failed', ...others] = codes;
  const code = codes.has('interrupted') ? 'interrupted' : others.length === 0 ? common : 'aws-failed';
  const hints = new Set([...errors.flatMap(({ hint }) => hint ?? []), ...advice]);
  return new AppError(
    code,
    errors.map(({ message }) => message).join('; '),
    hints.size === 0 ? {} : { hint: [...hints].join('\n  ') },
  );
}

/** Waits until it has stopped and reported that it is ready. Returns Chromium's version. */
async function awaitBuilder(order: ImageOrder, instanceId: string): Promise<string> {
  const { cloud, clock } = order;
  let seen = '';
  const look = async (): Promise<void> =>
    void (seen = (await patiently(order, () => cloud.console(instanceId), NO_IMAGE)) ?? seen);
  const stopped = await poll(
    order,
    { forMs: BUILD_MS, word: 'the builder is still at work', left: NO_IMAGE },
    async () => {
      const state = await patiently(order, () => cloud.builderState(instanceId), NO_IMAGE);
      if (state === 'terminated' || state === 'shutting-down')
        throw failed(`the builder ${instanceId} was terminated by another process`, seen);
      // Also while it runs: EC2 may lag behind for a stopped one.
      await look();
      return state === 'stopped' ? true : null;
    },
  );
  if (stopped === null) throw failed(`the builder ${instanceId} has not stopped in ${formatDuration(BUILD_MS)}`, seen);
  const untilMs = clock.monotonic() + CONSOLE_MS;
  while (readyVersion(seen) === null && recipeFailure(seen) === null && clock.monotonic() < untilMs) {
    await pause(order, NO_IMAGE);
    await look();
  }
  const version = readyVersion(seen);
  if (version !== null) return version;
  throw failed(`the builder stopped without being ready: ${recipeFailure(seen) ?? 'it does not say why'}`, seen);
}

/** @param copiedTo the region of a copy */
async function awaitImage(watch: Watch, imageId: string, copiedTo?: string): Promise<void> {
  const left = copiedTo === undefined ? goesOn(imageId) : copyGoesOn(imageId, copiedTo);
  const word = `the image${copiedTo === undefined ? '' : ` in ${copiedTo}`} is still being made`;
  const made = await poll(watch, { forMs: IMAGE_MS, word, left }, async () => {
    const state = await patiently(watch, () => watch.cloud.imageState(imageId), left);
    if (state === 'available') return true;
    if (state === null || state === 'pending') return null;
    throw new AppError('aws-failed', `EC2 could not make the image ${imageId}: it is ${state}`, {
      hint: 'Try again; nothing of it can be used.',
    });
  });
  if (made !== null) return;
  throw new AppError('aws-failed', `the image ${imageId} is not available after ${formatDuration(IMAGE_MS)}`, {
    hint: 'It may still become so: see aws ec2 describe-images --image-ids. Until then runs do not use it.',
  });
}

/** The result of `look` once it is not null; null at the timeout. */
async function poll<T>(
  watch: Watch,
  { forMs, word, left }: { forMs: number; word: string; left: Leaving },
  look: () => Promise<T | null>,
): Promise<T | null> {
  const { clock, onProgress } = watch;
  const startMs = clock.monotonic();
  let toldMs = startMs;
  while (clock.monotonic() - startMs < forMs) {
    await pause(watch, left);
    const result = await look();
    if (result !== null) return result;
    if (clock.monotonic() - toldMs < PROGRESS_MS) continue;
    toldMs = clock.monotonic();
    onProgress(`${word} (${formatDuration(Math.round((toldMs - startMs) / 1_000) * 1_000)})`);
  }
  return null;
}

/** The message when the user leaves early. */
interface Leaving {
  message: string;
  hint?: string;
}

const NO_IMAGE: Leaving = { message: 'interrupted: the builder is being ended, no image was made' };

const goesOn = (imageId: string): Leaving => ({
  message: `interrupted: the builder is being ended, but EC2 may go on making the image ${imageId}, which is billed and used by runs once it is there`,
  hint: `See whether it is there with: orchestrator image --list. Without it: aws ec2 deregister-image --image-id ${imageId} --delete-associated-snapshots`,
});

const copyGoesOn = (imageId: string, region: string): Leaving => ({
  message: `interrupted, but EC2 may go on making the image ${imageId}, which is billed and used by runs once it is there`,
  hint: `Without it: aws ec2 deregister-image --region ${region} --image-id ${imageId} --delete-associated-snapshots`,
});

async function pause({ clock, signal }: Watch, { message, hint }: Leaving): Promise<void> {
  await clock.sleep(POLL_MS, signal);
  if (signal.aborted) throw new AppError('interrupted', message, hint === undefined ? {} : { hint });
}

const FINAL: readonly string[] = ['aws-denied', 'aws-invalid', 'aws-capability-missing'];

/** A read-only call: one unanswered call must not discard ten minutes of work. */
async function patiently<T>(watch: Watch, call: () => Promise<T>, left: Leaving): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await call();
    } catch (error) {
      const isFinal = error instanceof AppError && FINAL.includes(error.code);
      if (isFinal || tried === LOOK_TRIES) throw error;
      await pause(watch, left);
    }
  }
}

/** Terminates the builder. Never throws: the earlier error matters more. */
async function endBuilder({ cloud, clock, onProgress }: Watch, instanceId: string): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      await cloud.terminate(instanceId);
      return;
    } catch (error) {
      if (tried === TERMINATE_TRIES) {
        onProgress(
          `! the builder ${instanceId} could not be ended: ${describeError(error)}. It has stopped or will stop on its own; orchestrator gc ends it, or aws ec2 terminate-instances --instance-ids ${instanceId}`,
        );
        return;
      }
      await clock.sleep(POLL_MS);
    }
  }
}

const failed = (message: string, console: string): AppError =>
  new AppError('aws-failed', message, {
    hint:
      console === ''
        ? 'EC2 shows nothing of its console: check that its subnet has a way out to the internet.'
        : `The end of its console:\n${console.slice(-CONSOLE_SHOWN)}`,
  });
