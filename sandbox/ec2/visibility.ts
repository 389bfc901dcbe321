/** What EC2's calls can see of a young instance: on AWS it takes a while until every part of EC2 knows of a launch. */
import type { Ec2Context } from './context.ts';
import type { Instance } from './instance.ts';
import type { TagStore } from './tag-store.ts';

type SeeingContext = Pick<Ec2Context, 'fleet' | 'tags' | 'conditions' | 'clock'>;

/** True while calls answer NotFound for it, though it exists. */
export function isUnknown(
  instance: Instance,
  { conditions, clock }: Pick<SeeingContext, 'conditions' | 'clock'>,
): boolean {
  return clock.now() < instance.launchedAtMs + conditions.now.unknownMs;
}

/** Every instance that calls know of, in order of launch. */
export function knownInstances(context: SeeingContext): Instance[] {
  return context.fleet.all().filter((instance) => !isUnknown(instance, context));
}

/** Null when there is none, or none yet for this call. */
export function findKnown(id: string, context: SeeingContext): Instance | null {
  const instance = context.fleet.find(id);
  return instance && !isUnknown(instance, context) ? instance : null;
}

/** The tags as calls see them: none while they are still on their way. */
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
