/** The compute port on EC2 through the SDK: AWS, the sandbox or any endpoint that speaks the EC2 query protocol. */
import type { EC2, Instance, RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { AppError } from '../../shared/domain/errors.ts';
import { allPages, type AwsOptions, type LazyClient, lazyEc2, tagList, tagRecord } from './sdk-clients.ts';
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
} from './compute.ts';
import { findImage, findSecurityGroups, findSubnets } from './ec2-lookups.ts';
import { findBrowserImage } from './image-lookup.ts';

/** Ids per TerminateInstances: EC2 takes 1,000, but one unknown id fails the whole call. */
const TERMINATE_BATCH = 100;

export class Ec2Compute implements Compute {
  readonly #ec2: LazyClient<EC2>;
  readonly #endpoint: string | null;

  /** Makes no call and loads no SDK yet. */
  constructor(options: AwsOptions) {
    this.#ec2 = lazyEc2(options);
    this.#endpoint = options.endpoint;
  }

  /** Closes the kept-alive connections. */
  close(): void {
    this.#ec2.close();
  }

  async launch(request: LaunchRequest): Promise<LaunchResult> {
    const ec2 = await this.#ec2.get();
    let instances: Instance[] | undefined;
    try {
      instances = (await ec2.runInstances(runInstancesInput(request))).Instances;
    } catch (error) {
      return launchFailure(error);
    }
    const instance = instances?.map(toCloudInstance).find((i) => i !== null);
    // An empty 200: sent by a gateway, or by an endpoint that launched fewer than requested.
    if (!instance) return { kind: 'unknown', message: 'RunInstances answered without an instance' };
    return { kind: 'launched', instance };
  }

  list(tag: { key: string; value: string }): Promise<CloudInstance[]> {
    return this.#call('DescribeInstances', async (ec2) => {
      const where = `DescribeInstances at ${this.#endpoint ?? 'AWS'}`;
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
        if (batch.length === 1 || !namesOneInstance(error)) {
          failures.push(error);
          return;
        }
        // One bad id fails the list: the other instances must not wait for it.
        for (const id of batch) await this.#terminateBatch([id]).catch((reason: unknown) => failures.push(reason));
      });
    }
    if (failures.length > 0) throw toAppError(failures[0], 'TerminateInstances', this.#endpoint);
  }

  async #terminateBatch(ids: readonly string[]): Promise<void> {
    const ec2 = await this.#ec2.get();
    try {
      await ec2.terminateInstances({ InstanceIds: [...ids] });
    } catch (error) {
      if (ids.length > 1 || classifyAwsError(error).kind !== 'not-found') throw error;
    }
  }

  async consoleOutput(instanceId: string): Promise<string | null> {
    const ec2 = await this.#ec2.get();
    const ask = (latest: boolean) =>
      ec2.getConsoleOutput({ InstanceId: instanceId, ...(latest ? { Latest: true } : {}) });
    try {
      // Without Latest a new instance shows nothing for minutes; pre-Nitro types refuse it.
      const reply = await ask(true).catch((error: unknown) => {
        if (classifyAwsError(error).kind === 'invalid') return ask(false);
        throw error;
      });
      return reply.Output ? Buffer.from(reply.Output, 'base64').toString('utf8') : null;
    } catch (error) {
      if (classifyAwsError(error).kind === 'not-found') return null;
      throw toAppError(error, `GetConsoleOutput ${instanceId}`, this.#endpoint);
    }
  }

  subnets(ids: readonly string[]): Promise<SubnetInfo[]> {
    return this.#call('DescribeSubnets', (ec2) => findSubnets(ec2, ids));
  }

  securityGroups(ids: readonly string[], vpcId: string): Promise<string[]> {
    return this.#call('DescribeSecurityGroups', (ec2) => findSecurityGroups(ec2, ids, vpcId));
  }

  image(id: string | null, architecture: 'x86_64' | 'arm64', purpose: ImagePurpose = 'http'): Promise<string> {
    return this.#call('DescribeImages', async (ec2) => {
      const forBrowser = id === null && purpose === 'browser' ? await findBrowserImage(ec2, architecture) : null;
      return forBrowser ?? findImage(ec2, id, architecture);
    });
  }

  async #call<T>(name: string, call: (ec2: EC2) => Promise<T>): Promise<T> {
    const ec2 = await this.#ec2.get();
    try {
      return await call(ec2);
    } catch (error) {
      throw toAppError(error, name, this.#endpoint);
    }
  }
}

/** True when the list failed because of one of its ids, so that the others may succeed one by one. */
function namesOneInstance(error: unknown): boolean {
  const { kind } = classifyAwsError(error);
  return kind === 'not-found' || kind === 'invalid';
}

/** RunInstances for one slot; this one call carries everything the instance needs. */
export function runInstancesInput(request: LaunchRequest): RunInstancesCommandInput {
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
    ],
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

/** Null while an instance is starting: some endpoints then repeat its state as the code. */
function toStateReason(reason: Instance['StateReason']): StateReason | null {
  const { Code: code = '', Message: message = '' } = reason ?? {};
  return code.includes('.') ? { code, message } : null;
}

/** An unknown state counts as alive: such an instance is watched and terminated, never forgotten. */
const toState = (name: string | undefined): CloudState => CLOUD_STATES.find((state) => state === name) ?? 'pending';
