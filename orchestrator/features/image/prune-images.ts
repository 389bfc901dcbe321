/** `orchestrator image --prune`: which images of the command are no longer needed, and their removal. */
import { regionsOf } from '../../core/model/run-settings.ts';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { ImageCloud } from './image-ec2.ts';
import type { OwnImage } from '../../core/cloud/image-lookup.ts';
import type { RunStore, StoreReaders } from '../../core/model/stores.ts';
import { hasLeftovers, isUnfinished } from '../../core/lookup/find-run.ts';

/** Number of newest runs that are checked for leftovers. */
const LOOKED_AT = 50;

export interface Needed {
  /**
   * The owner whose images alone are removed: others belong to other main servers, and the policy does not cover them.
   */
  owner: string;
  ids: ReadonlySet<string>;
}

/** All but the newest that can be launched, per architecture, those still being made and needed ones. */
export function supersededImages(newestFirst: readonly OwnImage[], { owner, ids }: Needed): OwnImage[] {
  const kept = new Set<string>();
  return newestFirst.filter((image) => {
    const { id, architecture, state } = image;
    if (state === 'pending') return false;
    const isNewest = state === 'available' && !kept.has(architecture);
    if (isNewest) kept.add(architecture);
    return !isNewest && image.owner === owner && !ids.has(id);
  });
}

/** Images that stay although a newer one exists, each with the reason. */
export function keptImages(newestFirst: readonly OwnImage[], { owner, ids }: Needed): { id: string; why: string }[] {
  const old = supersededImages(
    newestFirst.map((image) => ({ ...image, owner })),
    { owner, ids: new Set() },
  );
  const real = new Map(newestFirst.map((image) => [image.id, image]));
  return old.flatMap(({ id }) => {
    if (ids.has(id)) return { id, why: 'the configuration or a run that has not ended names it' };
    const whose = real.get(id)?.owner ?? null;
    if (whose === owner) return [];
    return { id, why: whose === null ? 'it has no tag crawlfleet:owner' : `it belongs to the owner ${whose}` };
  });
}

/** Images from which unfinished runs launch their replacements: those they pin, and those their claims name. */
export async function imagesInUse(
  stores: Pick<StoreReaders, 'of'> & { runs: Pick<RunStore, 'list' | 'unfinished'> },
): Promise<string[]> {
  const ids = new Set<string>();
  // Runs of other sites share the database: an unfinished one may be older than the newest that are listed.
  const runs = [...(await stores.runs.unfinished()), ...(await stores.runs.list(LOOKED_AT))];
  for (const run of new Map(runs.map((run) => [run.id, run])).values()) {
    if (!isUnfinished(run) && !(await hasLeftovers(stores, run))) continue;
    for (const { image } of regionsOf(run.settings.aws)) if (image !== null) ids.add(image);
    for (const { request } of await stores.of(run.id).fleet.instances()) ids.add(request.imageId);
  }
  return [...ids];
}

export interface Pruned {
  removed: string[];
  refused: { id: string; why: string }[];
}

/** Removes one after another; reports a refusal and continues with the others. @param nameOf how output names an id */
export async function removeImages(
  cloud: Pick<ImageCloud, 'removeImage'>,
  images: readonly OwnImage[],
  line: (text: string) => void,
  nameOf: (id: string) => string,
): Promise<Pruned> {
  const pruned: Pruned = { removed: [], refused: [] };
  for (const image of images) {
    try {
      await cloud.removeImage(image);
      pruned.removed.push(image.id);
      line(`removed ${nameOf(image.id)}`);
    } catch (error) {
      const why = describeError(error);
      pruned.refused.push({ id: image.id, why });
      line(`! ${nameOf(image.id)} could not be removed: ${why}`);
    }
  }
  return pruned;
}

/** The command's error when some could not be removed; null when all were. */
export function refusalOf({ refused }: Pruned, nameOf: (id: string) => string): AppError | null {
  if (refused.length === 0) return null;
  return new AppError('aws-failed', `${refused.map(({ id }) => nameOf(id)).join(', ')} could not be removed`, {
    hint: 'It takes the rights of orchestrator setup --image, which cover images and snapshots with our owner in the tag crawlfleet:owner.',
  });
}
