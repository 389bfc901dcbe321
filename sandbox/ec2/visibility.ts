/** What EC2's calls can see of a new instance: on AWS it takes a while until all of EC2 knows of a launch. */
import type { Ec2Context } from './context.ts';
import type { Instance } from './instance.ts';
import type { TagStore } from './tag-store.ts';

type SeeingContext = Pick<Ec2Context, 'fleet' | 'tags' | 'conditions' | 'clock'>;

/** True while calls answer NotFound for it, though it exists. */
function isUnknown(instance: Instance, { conditions, clock }: Pick<SeeingContext, 'conditions' | 'clock'>): boolean {
  return clock.now() < instance.launchedAtMs + conditions.now.unknownMs;
}

/** Every instance visible to calls, in launch order. */
export function knownInstances(context: SeeingContext): Instance[] {
  return context.fleet.all().filter((instance) => !isUnknown(instance, context));
}

/** Null when it does not exist, or is not visible yet. */
export function findKnown(id: string, context: SeeingContext): Instance | null {
  const instance = context.fleet.find(id);
  return instance && !isUnknown(instance, context) ? instance : null;
}

/** The tags as visible to calls: none at first. */
export function seenTags(context: SeeingContext): Pick<TagStore, 'of' | 'entries'> {
  const { fleet, tags, conditions, clock } = context;
  const young = new Set(
    fleet
      .all()
      .filter((i) => clock.now() < i.launchedAtMs + conditions.now.untaggedMs)
      .flatMap((i) => [i.id, i.volumeId, i.interfaceId]),
  );
  return {
    of: (id) => (young.has(id) ? new Map<string, string>() : tags.of(id)),
    entries: () => tags.entries().filter(({ resourceId }) => !young.has(resourceId)),
  };
}
