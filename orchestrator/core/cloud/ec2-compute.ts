/** The compute port on EC2 through the SDK: AWS, the sandbox or any endpoint that speaks the EC2 query protocol. */
import type {
  BlockDeviceMapping,
  EC2,
  Instance,
  RunInstancesCommandInput,
  Image,
  Subnet,
  Tag,
} from '@aws-sdk/client-ec2';
import { AppError } from '../../../shared/domain/errors.ts';
import { allOf, allPages, type AwsOptions, AwsService, lazyEc2, tagList, tagRecord } from './sdk-clients.ts';
import { classifyAwsError, launchFailure, toAppError } from './aws-errors.ts';
import {
  CLOUD_STATES,
  type CloudInstance,
  type CloudState,
  type Compute,
  type ImagePurpose,
  type LaunchRequest,
  type LaunchResult,
  type StateReason,
  type SubnetInfo,
  type VolumeSettings,
} from './compute.ts';
import { findBrowserImage, compare, newestFirst } from './image-lookup.ts';

/** Ids per TerminateInstances: EC2 takes 1,000, but one unknown id fails the whole call. */
const TERMINATE_BATCH = 100;

export class Ec2Compute implements Compute, Disposable {
  readonly #ec2: AwsService<EC2>;

  /** Makes no call and loads no SDK yet. */
  constructor(options: AwsOptions) {
    this.#ec2 = new AwsService(lazyEc2, options);
  }

  /** Closes the kept-alive connections. */
  close(): void {
    this.#ec2.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async launch(request: LaunchRequest): Promise<LaunchResult> {
    const ec2 = await this.#ec2.client();
    let input: RunInstancesCommandInput;
    try {
      input = await runInstancesInput(ec2, request);
    } catch (error) {
      return beforeLaunch(error);
    }
    let instances: Instance[] | undefined;
    try {
      instances = (await ec2.runInstances(input)).Instances;
    } catch (error) {
      return launchFailure(error);
    }
    const instance = instances?.map(toCloudInstance).find((i) => i !== null);
    // An empty 200: sent by a gateway, or by an endpoint that launched fewer than requested.
    if (!instance) return { kind: 'unknown', message: 'RunInstances answered without an instance' };
    return { kind: 'launched', instance };
  }

  list(tag: { key: string; value: string }): Promise<CloudInstance[]> {
    return this.#ec2.call('DescribeInstances', async (ec2) => {
      const where = `DescribeInstances at ${this.#ec2.endpoint ?? 'AWS'}`;
      const Filters = [{ Name: `tag:${tag.key}`, Values: [tag.value] }];
      const pages = ec2.paginateDescribeInstances({ Filters, MaxResults: 1_000 });
      const found = new Map<string, CloudInstance>();
      for await (const { Reservations } of allPages(pages, where)) {
        // An empty set is a list. No set at all is a gateway's empty 200 and must not read as "all instances are gone".
        if (!Reservations) {
          throw new AppError('aws-failed', `${where} answered 200 without a list`, {
            hint: 'Check that aws.endpoint is an AWS endpoint and that no gateway answers for it.',
          });
        }
        for (const instance of Reservations.flatMap((r) => r.Instances ?? [])) {
          const cloud = toCloudInstance(instance);
          // Some endpoints ignore an unknown filter and return every instance.
          if (cloud && cloud.tags[tag.key] === tag.value) found.set(cloud.id, cloud);
        }
      }
      return [...found.values()];
    });
  }

  async terminate(instanceIds: readonly string[]): Promise<void> {
    const failures: unknown[] = [];
    for (let at = 0; at < instanceIds.length; at += TERMINATE_BATCH) {
      const batch = instanceIds.slice(at, at + TERMINATE_BATCH);
      await this.#terminateBatch(batch).catch(async (error: unknown) => {
        const { kind } = classifyAwsError(error);
        if (batch.length === 1 || (kind !== 'not-found' && kind !== 'invalid')) return void failures.push(error);
        // One bad id fails the list: the other instances must not wait for it.
        for (const id of batch) await this.#terminateBatch([id]).catch((reason: unknown) => failures.push(reason));
      });
    }
    if (failures.length > 0) throw toAppError(failures[0], 'TerminateInstances', this.#ec2.endpoint);
  }

  async #terminateBatch(ids: readonly string[]): Promise<void> {
    const ec2 = await this.#ec2.client();
    try {
      await ec2.terminateInstances({ InstanceIds: [...ids] });
    } catch (error) {
      if (ids.length > 1 || classifyAwsError(error).kind !== 'not-found') throw error;
    }
  }

  async consoleOutput(instanceId: string): Promise<string | null> {
    const reply = await this.#ec2.unless('not-found', `GetConsoleOutput ${instanceId}`, (ec2) =>
      // Without Latest a new instance shows nothing for minutes; pre-Nitro types refuse it.
      ec2.getConsoleOutput({ InstanceId: instanceId, Latest: true }).catch((error: unknown) => {
        if (classifyAwsError(error).kind === 'invalid') return ec2.getConsoleOutput({ InstanceId: instanceId });
        throw error;
      }),
    );
    return reply?.Output ? Buffer.from(reply.Output, 'base64').toString('utf8') : null;
  }

  subnets(ids: readonly string[]): Promise<SubnetInfo[]> {
    return this.#ec2.call('DescribeSubnets', (ec2) => findSubnets(ec2, ids));
  }

  securityGroups(ids: readonly string[], vpcId: string): Promise<string[]> {
    return this.#ec2.call('DescribeSecurityGroups', (ec2) => findSecurityGroups(ec2, ids, vpcId));
  }

  image(id: string | null, architecture: 'x86_64' | 'arm64', purpose: ImagePurpose = 'http'): Promise<string> {
    return this.#ec2.call('DescribeImages', async (ec2) => {
      const forBrowser = id === null && purpose === 'browser' ? await findBrowserImage(ec2, architecture) : null;
      return forBrowser ?? findImage(ec2, id, architecture);
    });
  }
}

/**
 * RunInstances for one slot; this one call carries everything the instance needs. Settings of a volume are bound to the
 * device that the image has it at, so with them the image is looked up; it never changes.
 */
export async function runInstancesInput(ec2: EC2, request: LaunchRequest): Promise<RunInstancesCommandInput> {
  const Tags = tagList(request.tags);
  return {
    ClientToken: request.clientToken,
    MinCount: 1,
    MaxCount: 1,
    ImageId: request.imageId,
    InstanceType: request.instanceType as NonNullable<RunInstancesCommandInput['InstanceType']>,
    UserData: Buffer.from(request.userData, 'utf8').toString('base64'),
    // Tagged at launch: a resource tagged later leaks when the process dies in between.
    TagSpecifications: [
      { ResourceType: 'instance', Tags },
      { ResourceType: 'volume', Tags },
      { ResourceType: 'network-interface', Tags },
    ],
    ...(request.volume ? { BlockDeviceMappings: [await rootVolume(ec2, request.imageId, request.volume)] } : {}),
    // The default is to stop, and the volume of a stopped instance is still billed.
    InstanceInitiatedShutdownBehavior: 'terminate',
    MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1, HttpEndpoint: 'enabled' },
    // Its own public address lets each instance have its own pace. With an interface given, subnet and groups go here.
    NetworkInterfaces: [
      {
        DeviceIndex: 0,
        AssociatePublicIpAddress: true,
        DeleteOnTermination: true,
        SubnetId: request.subnetId,
        Groups: request.securityGroupIds,
      },
    ],
    ...(request.instanceProfile === null ? {} : { IamInstanceProfile: { Name: request.instanceProfile } }),
  };
}

/** Nothing has been launched yet, so a failure without an answer is no `unknown` launch: it is retried. */
function beforeLaunch(error: unknown): LaunchResult {
  const failure = launchFailure(error);
  if (failure.kind === 'refused') return failure;
  const cause = error instanceof AppError ? 'invalid' : 'throttled';
  return { kind: 'refused', cause, message: failure.message };
}

async function rootVolume(ec2: EC2, imageId: string, volume: VolumeSettings): Promise<BlockDeviceMapping> {
  const { sizeGb, type, encrypted, kmsKey } = volume;
  const reply = await ec2.describeImages({ ImageIds: [imageId] });
  const DeviceName = reply.Images?.find((image) => image.ImageId === imageId)?.RootDeviceName;
  if (!DeviceName) throw invalid(`EC2 shows no root volume of ${imageId}`, 'Leave aws.volume out for this image.');
  return {
    DeviceName,
    Ebs: {
      DeleteOnTermination: true,
      ...(sizeGb === undefined ? {} : { VolumeSize: sizeGb }),
      ...(type === undefined ? {} : { VolumeType: type }),
      ...(encrypted === undefined ? {} : { Encrypted: true }),
      ...(kmsKey === undefined ? {} : { KmsKeyId: kmsKey }),
    },
  };
}

function toCloudInstance(instance: Instance): CloudInstance | null {
  if (!instance.InstanceId) return null;
  return {
    id: instance.InstanceId,
    state: toState(instance.State?.Name),
    // Addresses may be absent, or an empty string on some endpoints.
    publicAddress: instance.PublicIpAddress || null,
    privateAddress: instance.PrivateIpAddress || null,
    instanceType: instance.InstanceType ?? 'unknown',
    zone: instance.Placement?.AvailabilityZone ?? null,
    launchedAtMs: instance.LaunchTime?.getTime() ?? 0,
    tags: tagRecord(instance.Tags),
    stateReason: toStateReason(instance.StateReason),
  };
}

/** The reason for the state; null while an instance is starting: some endpoints then repeat its state as the code. */
function toStateReason(reason: Instance['StateReason']): StateReason | null {
  const { Code: code = '', Message: message = '' } = reason ?? {};
  return code.includes('.') ? { code, message } : null;
}

/** An unknown state counts as alive: such an instance is watched and terminated, never forgotten. */
const toState = (name: string | undefined): CloudState => CLOUD_STATES.find((state) => state === name) ?? 'pending';

const invalid = (message: string, hint: string): AppError => new AppError('aws-invalid', message, { hint });

/**
 * Handles the error of a call by id: throws `aws-invalid` that names the setting when an id is malformed or names
 * nothing.
 */
function refuseIds(setting: string, hint: string) {
  return (error: unknown): never => {
    const { kind, code, message } = classifyAwsError(error);
    if (kind !== 'not-found' && !code.endsWith('.Malformed')) throw error;
    throw invalid(`${setting}: ${message}`, hint);
  };
}

/**
 * The subnets with these ids or tags, or the default VPC's; sorted by zone and id. All are in one VPC, as the load
 * balancer requires.
 */
async function findSubnets(ec2: EC2, named: readonly string[]): Promise<SubnetInfo[]> {
  const hint = 'Set aws.subnets to public subnets of one VPC, in two zones: ids, or tag:KEY=VALUE.';
  const ids = await subnetIds(ec2, named, hint);
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

/** The ids, with each `tag:KEY=VALUE` replaced by those of the subnets that have the tag. */
async function subnetIds(ec2: EC2, named: readonly string[], hint: string): Promise<string[]> {
  if (!named.some((name) => TAG_FORM.test(name))) return [...named];
  const all = await allOf(ec2.paginateDescribeSubnets({}), 'DescribeSubnets', (page) => page.Subnets);
  const found = named.flatMap((name) => {
    if (!TAG_FORM.test(name)) return [name];
    const tagged = all.flatMap((s) => (s.SubnetId && hasTag(s.Tags, name) ? [s.SubnetId] : []));
    if (tagged.length === 0) throw invalid(`aws.subnets: no subnet has ${name}`, hint);
    return tagged;
  });
  return [...new Set(found)];
}

function toSubnet(subnet: Subnet): SubnetInfo[] {
  const { SubnetId, AvailabilityZone, VpcId } = subnet;
  if (!SubnetId || !AvailabilityZone || !VpcId) return [];
  return [{ id: SubnetId, zone: AvailabilityZone, vpcId: VpcId, publicAddresses: subnet.MapPublicIpOnLaunch ?? false }];
}

/** `tag:KEY=VALUE`: those with this tag. Compared here, because some endpoints lack that filter. */
const TAG_FORM = /^tag:([^=]+)=(.*)$/;

function hasTag(tags: readonly Tag[] | undefined, form: string): boolean {
  const [, key, value] = TAG_FORM.exec(form) ?? [];
  return (tags ?? []).some((tag) => tag.Key === key && (tag.Value ?? '') === value);
}

/** The given groups (by id or tag), checked to exist in the VPC; with none given, the VPC's default group. */
async function findSecurityGroups(ec2: EC2, wanted: readonly string[], vpcId: string): Promise<string[]> {
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

/** The security groups with these tags; AWS filters by VPC only. */
async function taggedGroups(ec2: EC2, tags: readonly string[], vpcId: string, hint: string): Promise<string[]> {
  const pages = ec2.paginateDescribeSecurityGroups({ Filters: [{ Name: 'vpc-id', Values: [vpcId] }] });
  const all = await allOf(pages, 'DescribeSecurityGroups', (page) => page.SecurityGroups);
  const groups = all.filter((g) => g.VpcId === vpcId);
  const found = tags.map((tag) => ({
    tag,
    ids: groups.flatMap((g) => (g.GroupId && hasTag(g.Tags, tag) ? [g.GroupId] : [])),
  }));
  const missing = found.filter(({ ids }) => ids.length === 0).map(({ tag }) => tag);
  if (missing.length > 0) throw invalid(`aws.security_groups: no group in ${vpcId} has ${missing.join(', ')}`, hint);
  return [...new Set(found.flatMap(({ ids }) => ids))];
}

/** Amazon Linux 2023, standard image: it has cloud-init, systemd and curl, and exists in every region. */
const IMAGE_NAME = /^al2023-ami-2023\./;

/** The given image, checked to exist and to fit, or with null the newest Amazon Linux 2023 for the architecture. */
async function findImage(ec2: EC2, id: string | null, architecture: 'x86_64' | 'arm64'): Promise<string> {
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
