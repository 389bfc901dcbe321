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
  const balancers = await allOf(balancerPages, 'DescribeLoadBalancers', (page) => page.LoadBalancers);
  const groups = await allOf(groupPages, 'DescribeTargetGroups', (page) => page.TargetGroups);
  const all = [
    ...balancers.flatMap(({ LoadBalancerArn: arn, LoadBalancerName: name, CreatedTime }) => {
      if (arn === undefined) return [];
      return [{ arn, name, own: { loadBalancerArn: arn, createdAtMs: CreatedTime?.getTime() ?? null } }];
    }),
    ...groups.flatMap(({ TargetGroupArn: arn, TargetGroupName: name }) =>
      arn === undefined ? [] : [{ arn, name, own: { targetGroupArn: arn } }],
    ),
  ];
  const tagsOf = await readTags(
    elb,
    all.flatMap(({ arn }) => arn ?? []),
  );
  const found = new Map<string, OwnedBalancer>();
  for (const { arn, name = '', own } of all) {
    const tags = tagsOf.get(arn ?? '');
    if (tags?.[TAG.owner] !== owner) continue;
    const nothing = { name, loadBalancerArn: null, targetGroupArn: null, createdAtMs: null, tags };
    found.set(name, { ...(found.get(name) ?? nothing), ...own });
  }
  return [...found.values()];
}

async function readTags(elb: ElasticLoadBalancingV2, arns: readonly string[]): Promise<Map<string, Tags>> {
  const tags = new Map<string, Tags>();
  const read = async (ResourceArns: string[]): Promise<void> => {
    const reply = await elb.describeTags({ ResourceArns });
    for (const { ResourceArn, Tags } of reply.TagDescriptions ?? [])
      if (ResourceArn) tags.set(ResourceArn, tagRecord(Tags));
  };
  const unlessGone = (error: unknown): void => {
    if (classifyAwsError(error).kind !== 'not-found') throw error;
  };
  for (let at = 0; at < arns.length; at += TAGS_BATCH) {
    const batch = arns.slice(at, at + TAGS_BATCH);
    await read(batch).catch(async (error: unknown) => {
      unlessGone(error);
      // One of them has been removed since the listing; the others still have to be read.
      for (const arn of batch) await read([arn]).catch(unlessGone);
    });
  }
  return tags;
}
