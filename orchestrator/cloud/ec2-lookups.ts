/** What a launch needs to find in EC2 first: subnets, security groups and an image. */
import type { EC2, Image, SecurityGroup, Subnet } from '@aws-sdk/client-ec2';
import { AppError } from '../../shared/domain/errors.ts';
import { classifyAwsError } from './aws-errors.ts';
import type { SubnetInfo } from './compute.ts';
import { compare, newestFirst } from './image-lookup.ts';

const invalid = (message: string, hint: string): AppError => new AppError('aws-invalid', message, { hint });

/** For a call by id: throws `aws-invalid` that names the setting when an id is malformed or names nothing. */
function refuseIds(setting: string, hint: string) {
  return (error: unknown): never => {
    const { kind, code, message } = classifyAwsError(error);
    if (kind !== 'not-found' && !code.endsWith('.Malformed')) throw error;
    throw invalid(`${setting}: ${message}`, hint);
  };
}

/**
 * The subnets with these ids, or the default VPC's; sorted by zone and id. All are in one VPC, as the load balancer
 * requires.
 */
export async function findSubnets(ec2: EC2, ids: readonly string[]): Promise<SubnetInfo[]> {
  const hint = 'Set aws.subnets to public subnets of one VPC, in two zones.';
  const reply = await ec2
    .describeSubnets(
      ids.length > 0 ? { SubnetIds: [...ids] } : { Filters: [{ Name: 'default-for-az', Values: ['true'] }] },
    )
    .catch(refuseIds('aws.subnets', hint));
  // Filters are checked again here: some endpoints ignore unknown filters.
  const wanted = (reply.Subnets ?? []).filter((s) =>
    ids.length > 0 ? ids.includes(s.SubnetId ?? '') : s.DefaultForAz,
  );
  const subnets = wanted.flatMap(toSubnet).sort((a, b) => compare(a.zone, b.zone) || compare(a.id, b.id));
  const missing = ids.filter((id) => !subnets.some((s) => s.id === id));
  if (missing.length > 0) throw invalid(`aws.subnets: EC2 does not know ${missing.join(', ')}`, hint);
  if (subnets.length === 0) throw invalid('This region has no default VPC with subnets', hint);
  if (new Set(subnets.map((s) => s.vpcId)).size > 1) throw invalid('aws.subnets are in more than one VPC', hint);
  return subnets;
}

function toSubnet(subnet: Subnet): SubnetInfo[] {
  const { SubnetId, AvailabilityZone, VpcId } = subnet;
  if (!SubnetId || !AvailabilityZone || !VpcId) return [];
  return [{ id: SubnetId, zone: AvailabilityZone, vpcId: VpcId, publicAddresses: subnet.MapPublicIpOnLaunch ?? false }];
}

/** `tag:KEY=VALUE`: the groups of the VPC with this tag. */
const TAG_FORM = /^tag:([^=]+)=(.*)$/;

/** The given groups (by id or tag), checked to exist in the VPC; with none given, the VPC's default group. */
export async function findSecurityGroups(ec2: EC2, wanted: readonly string[], vpcId: string): Promise<string[]> {
  const hint = `Set aws.security_groups to groups of ${vpcId}, the VPC of the subnets: ids, or tag:KEY=VALUE.`;
  const tags = wanted.filter((w) => TAG_FORM.test(w));
  const ids = wanted.filter((w) => !TAG_FORM.test(w));
  const byTag = tags.length > 0 ? await taggedGroups(ec2, tags, vpcId, hint) : [];
  if (tags.length > 0 && ids.length === 0) return byTag;
  const filters = [
    { Name: 'vpc-id', Values: [vpcId] },
    { Name: 'group-name', Values: ['default'] },
  ];
  const reply = await ec2
    .describeSecurityGroups(ids.length > 0 ? { GroupIds: [...ids] } : { Filters: filters })
    .catch(refuseIds('aws.security_groups', hint));
  const inVpc = (reply.SecurityGroups ?? []).filter((g) => g.VpcId === vpcId);
  const found = inVpc.filter((g) => ids.length > 0 || g.GroupName === 'default').map((g) => g.GroupId ?? '');
  const missing = ids.filter((id) => !found.includes(id));
  if (missing.length > 0) throw invalid(`aws.security_groups: ${missing.join(', ')} not found in ${vpcId}`, hint);
  if (found.length === 0) throw invalid(`${vpcId} has no default security group`, hint);
  return ids.length > 0 ? [...new Set([...ids, ...byTag])] : found.slice(0, 1);
}

/** Filtered by VPC only; tags are compared here, because some endpoints lack that filter. */
async function taggedGroups(ec2: EC2, tags: readonly string[], vpcId: string, hint: string): Promise<string[]> {
  const groups: SecurityGroup[] = [];
  const Filters = [{ Name: 'vpc-id', Values: [vpcId] }];
  for await (const { SecurityGroups = [] } of ec2.paginateDescribeSecurityGroups({ Filters }))
    groups.push(...SecurityGroups.filter((g) => g.VpcId === vpcId && g.GroupId));
  const found = tags.map((tag) => {
    const [, key, value] = TAG_FORM.exec(tag)!;
    return groups.filter((g) => (g.Tags ?? []).some((t) => t.Key === key && (t.Value ?? '') === value));
  });
  const missing = tags.filter((_, i) => found[i]!.length === 0);
  if (missing.length > 0) throw invalid(`aws.security_groups: no group in ${vpcId} has ${missing.join(', ')}`, hint);
  return [...new Set(found.flat().map((g) => g.GroupId!))];
}

/** Amazon Linux 2023, standard image: it has cloud-init, systemd and curl, and exists in every region. */
const IMAGE_NAME = /^al2023-ami-2023\./;

/** The given image, checked to exist and to fit, or with null the newest Amazon Linux 2023 for the architecture. */
export async function findImage(ec2: EC2, id: string | null, architecture: 'x86_64' | 'arm64'): Promise<string> {
  const hint = `Set aws.image to an image for ${architecture} that this account can see in this region.`;
  if (id !== null) {
    const reply = await ec2.describeImages({ ImageIds: [id] }).catch(refuseIds('aws.image', hint));
    const image = reply.Images?.find((i) => i.ImageId === id);
    if (!image) throw invalid(`aws.image: EC2 does not know ${id}`, hint);
    if (image.Architecture !== architecture) {
      throw invalid(`aws.image: ${id} is for ${image.Architecture}, the instance type is ${architecture}`, hint);
    }
    return id;
  }
  const filters = [
    { Name: 'architecture', Values: [architecture] },
    { Name: 'state', Values: ['available'] },
  ];
  const byName = { Name: 'name', Values: ['al2023-ami-2023.*'] };
  const ask = async (Filters: { Name: string; Values: string[] }[]): Promise<Image[]> =>
    (await ec2.describeImages({ Owners: ['amazon'], Filters })).Images ?? [];
  // Endpoints other than AWS have other images; there any image that fits will do, and the list is short.
  const image =
    newest(await ask([...filters, byName]), architecture, IMAGE_NAME) ??
    newest(await ask(filters), architecture, /(?:)/);
  if (!image) throw invalid(`EC2 shows no image for ${architecture}`, hint);
  return image;
}

function newest(images: readonly Image[], architecture: string, name: RegExp): string | null {
  const fitting = images.filter(
    (i) =>
      i.Architecture === architecture &&
      (i.State ?? 'available') === 'available' &&
      // Set for Windows only.
      i.Platform === undefined &&
      name.test(i.Name ?? ''),
  );
  return newestFirst(fitting)[0]?.ImageId ?? null;
}
