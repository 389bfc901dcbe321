/** Load balancers and target groups by owner tag. ELBv2 filters only by name, so all are listed and their tags read. */
import type { ElasticLoadBalancingV2 } from '@aws-sdk/client-elastic-load-balancing-v2';
import { classifyAwsError } from './aws-errors.ts';
import { TAG } from './compute.ts';
import { allOf, tagRecord } from './sdk-clients.ts';
import type { OwnedBalancer } from './load-balancer.ts';

/** DescribeTags takes at most 20 ARNs, and fails as a whole when one of them is gone. */
const TAGS_BATCH = 20;
const PAGE_SIZE = 400;

type Tags = Record<string, string>;

/** Everything whose owner tag has this value; a load balancer and its target group share a name and form one entry. */
export async function listOwned(elb: ElasticLoadBalancingV2, owner: string): Promise<OwnedBalancer[]> {
  const balancerPages = elb.paginateDescribeLoadBalancers({ PageSize: PAGE_SIZE });
  const groupPages = elb.paginateDescribeTargetGroups({ PageSize: PAGE_SIZE });
  const allBalancers = await allOf(balancerPages, 'DescribeLoadBalancers', (page) => page.LoadBalancers);
  const allGroups = await allOf(groupPages, 'DescribeTargetGroups', (page) => page.TargetGroups);
  const balancers = allBalancers.filter((b) => b.LoadBalancerArn);
  const groups = allGroups.filter((g) => g.TargetGroupArn);
  const arns = [...balancers.map((b) => b.LoadBalancerArn!), ...groups.map((g) => g.TargetGroupArn!)];
  const tags = await readTags(elb, arns);
  const found = new Map<string, OwnedBalancer>();
  const entryOf = (name: string, own: Tags): OwnedBalancer => {
    const entry = found.get(name) ?? {
      name,
      loadBalancerArn: null,
      targetGroupArn: null,
      createdAtMs: null,
      tags: own,
    };
    found.set(name, entry);
    return entry;
  };
  for (const balancer of balancers) {
    const own = tags.get(balancer.LoadBalancerArn!);
    if (own?.[TAG.owner] !== owner) continue;
    const entry = entryOf(balancer.LoadBalancerName ?? '', own);
    entry.loadBalancerArn = balancer.LoadBalancerArn!;
    entry.createdAtMs = balancer.CreatedTime?.getTime() ?? null;
  }
  for (const group of groups) {
    const own = tags.get(group.TargetGroupArn!);
    if (own?.[TAG.owner] !== owner) continue;
    entryOf(group.TargetGroupName ?? '', own).targetGroupArn = group.TargetGroupArn!;
  }
  return [...found.values()];
}

async function readTags(elb: ElasticLoadBalancingV2, arns: readonly string[]): Promise<Map<string, Tags>> {
  const tags = new Map<string, Tags>();
  for (let at = 0; at < arns.length; at += TAGS_BATCH) {
    const batch = arns.slice(at, at + TAGS_BATCH);
    try {
      await readBatch(elb, batch, tags);
    } catch (error) {
      if (classifyAwsError(error).kind !== 'not-found') throw error;
      // One of them has been removed since the listing; the others still have to be read.
      for (const arn of batch) await readBatch(elb, [arn], tags).catch(ignoreNotFound);
    }
  }
  return tags;
}

async function readBatch(elb: ElasticLoadBalancingV2, arns: readonly string[], into: Map<string, Tags>): Promise<void> {
  const reply = await elb.describeTags({ ResourceArns: [...arns] });
  for (const { ResourceArn, Tags } of reply.TagDescriptions ?? []) {
    if (ResourceArn) into.set(ResourceArn, tagRecord(Tags));
  }
}

function ignoreNotFound(error: unknown): void {
  if (classifyAwsError(error).kind !== 'not-found') throw error;
}
