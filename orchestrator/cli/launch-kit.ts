/** Prepares what every launch of a run needs: the bundle in the bucket, image, subnets, groups, types. */
import { hostname } from 'node:os';
import { bundleKey } from '../../shared/domain/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Compute } from '../cloud/compute.ts';
import type { LaunchKit } from '../control/launch.ts';
import type { RunSettings } from '../control/run-settings.ts';
import { architectureOf } from '../plan/instance-types.ts';

export interface Bundle {
  bytes: Uint8Array;
  sha256: string;
}

/**
 * Puts the bundle into the bucket (once: its key is its hash) and looks everything up.
 * @param plannedType the plan's choice; further allowed types of its architecture stand by for a dry pool
 */
export async function prepareLaunch(
  cloud: { compute: Compute; objects: ObjectStore },
  aws: RunSettings['aws'],
  plannedType: string,
  bundle: Bundle,
): Promise<LaunchKit> {
  const key = bundleKey(bundle.sha256);
  const architecture = architectureOf(plannedType);
  const subnets = await cloud.compute.subnets(aws.subnets);
  const [imageId, securityGroupIds] = await Promise.all([
    cloud.compute.image(aws.image, architecture),
    cloud.compute.securityGroups(aws.securityGroups, subnets[0]!.vpcId),
    cloud.objects.putIfAbsent(key, bundle.bytes, 'text/javascript'),
  ]);
  const others = aws.instanceTypes.filter((t) => t !== plannedType && architectureOf(t) === architecture);
  return {
    owner: hostname(),
    imageId,
    subnets,
    securityGroupIds,
    instanceTypes: [plannedType, ...others],
    bundle: { key, sha256: bundle.sha256 },
  };
}
