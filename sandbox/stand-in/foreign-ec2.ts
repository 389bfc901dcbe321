/** EC2 at another endpoint: the five calls that the host needs to boot its instances. */
import type * as Ec2Sdk from '@aws-sdk/client-ec2';
import { clientSettings } from '../../shared/adapters/aws-endpoint.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { type InstanceState, STATE_CODES } from '../ec2/instance.ts';

export interface ForeignInstance {
  id: string;
  state: InstanceState;
  instanceType: string;
  architecture: 'x86_64' | 'arm64';
  imageId: string;
  zone: string | null;
  launchedAtMs: number;
  tags: ReadonlyMap<string, string>;
}

export interface ForeignEc2 {
  /** Every instance of the run that the endpoint shows, in any state; throws when the call fails. */
  list(): Promise<ForeignInstance[]>;
  /** Base64 as sent; empty for none. */
  userData(id: string): Promise<string>;
  /** The launch's shutdown behaviour; `terminate` where the endpoint does not show it. */
  shutdownBehavior(id: string): Promise<'stop' | 'terminate'>;
  /** An instance unknown to the endpoint counts as done. */
  terminate(id: string): Promise<void>;
  stop(id: string): Promise<void>;
  close(): void;
}

export interface ForeignRun {
  endpoint: string;
  region: string;
  /** Value of the tag crawlfleet:run. */
  runId: string;
}

const RUN_TAG = 'crawlfleet:run';
/** Fixed keys, which are useless anywhere else. */
const CREDENTIALS = { accessKeyId: 'crawlfleet-dry-run', secretAccessKey: 'crawlfleet-dry-run' };
const TIMEOUT_MS = 10_000;
/**
 * The most pages read: with a thousand instances per page far above any dry run; an endpoint that always returns a next
 * token must not loop forever.
 */
const MAX_PAGES = 20;

/** Loads the SDK; makes no call yet. */
export async function openForeignEc2({ endpoint, region, runId }: ForeignRun): Promise<ForeignEc2> {
  const sdk = await import('@aws-sdk/client-ec2');
  const client = new sdk.EC2Client({
    ...clientSettings({ endpoint, region }),
    credentials: CREDENTIALS,
    maxAttempts: 2,
    requestHandler: { connectionTimeout: TIMEOUT_MS, requestTimeout: TIMEOUT_MS, throwOnRequestTimeout: true },
  });
  const attributeOf = (id: string, Attribute: 'userData' | 'instanceInitiatedShutdownBehavior') =>
    client.send(new sdk.DescribeInstanceAttributeCommand({ InstanceId: id, Attribute }));
  return {
    async list() {
      const found = new Map<string, ForeignInstance>();
      const Filters = [{ Name: `tag:${RUN_TAG}`, Values: [runId] }];
      let pages = 0;
      for await (const { Reservations } of sdk.paginateDescribeInstances({ client }, { Filters })) {
        // A gateway's empty 200 is not a list: treated as one, it would end every machine.
        if (!Reservations) throw new Error('DescribeInstances answered without a list');
        for (const instance of Reservations.flatMap((r) => r.Instances ?? []).flatMap(toForeign)) {
          // Some endpoints ignore an unknown filter and return every instance.
          if (instance.tags.get(RUN_TAG) === runId) found.set(instance.id, instance);
        }
        if (++pages === MAX_PAGES) break;
      }
      return [...found.values()];
    },
    userData: async (id) => (await attributeOf(id, 'userData')).UserData?.Value ?? '',
    async shutdownBehavior(id) {
      const reply = await attributeOf(id, 'instanceInitiatedShutdownBehavior').catch(() => null);
      return reply?.InstanceInitiatedShutdownBehavior?.Value === 'stop' ? 'stop' : 'terminate';
    },
    async terminate(id) {
      await client.send(new sdk.TerminateInstancesCommand({ InstanceIds: [id] })).catch(unlessUnknown);
    },
    async stop(id) {
      await client.send(new sdk.StopInstancesCommand({ InstanceIds: [id] })).catch(unlessUnknown);
    },
    close: () => client.destroy(),
  };
}

function unlessUnknown(error: unknown): void {
  if (!(error instanceof Error) || !/NotFound/.test(`${error.name} ${describeError(error)}`)) throw error;
}

function toForeign(instance: Ec2Sdk.Instance): ForeignInstance[] {
  const { InstanceId, State, InstanceType, Architecture, ImageId, Placement, LaunchTime, Tags } = instance;
  const state = State?.Name;
  if (!InstanceId || state === undefined || !(state in STATE_CODES)) return [];
  return [
    {
      id: InstanceId,
      state,
      instanceType: InstanceType ?? 'unknown',
      architecture: Architecture === 'arm64' ? 'arm64' : 'x86_64',
      imageId: ImageId ?? 'ami-00000000000000000',
      zone: Placement?.AvailabilityZone ?? null,
      launchedAtMs: LaunchTime?.getTime() ?? 0,
      tags: new Map((Tags ?? []).map((tag) => [tag.Key ?? '', tag.Value ?? ''])),
    },
  ];
}
