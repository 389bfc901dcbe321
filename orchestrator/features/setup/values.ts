/** The values that `setup` writes: names and locations from flags first, then from fleet.yaml, then the defaults. */
import { hostname } from 'node:os';
import { isIPv4 } from 'node:net';
import { AppError } from '../../../shared/domain/errors.ts';
import { type Partition, partitionOf } from '../../../shared/domain/partition.ts';
import { portOf } from '../../../shared/domain/same-site.ts';
import { REGION } from '../../core/config/forms.ts';
import { type ConfigValues, BUCKET, KMS_KEY } from '../../core/config/schema.ts';
import { DEFAULT_INSTANCE_TYPES } from '../../core/plan/defaults.ts';
import type { Environment } from '../../core/config/load-config.ts';

/** Where the main server is, from the view of the security groups. */
type MainServer =
  /** The main server is in the fleet's VPC: it gets its own security group. */
  | { kind: 'vpc' }
  /** Elsewhere: it comes from these addresses. */
  | { kind: 'outside'; cidr: string };

export interface SetupValues {
  /** The region of the bucket, and of the security groups if instances or the main server are there. */
  region: string;
  /** False for a region that only has the bucket. */
  hasGroups: boolean;
  /** The others of `aws.regions`, which get security groups of their own; omitted without `aws.regions`. */
  otherRegions?: readonly RegionValues[];
  /** Where the policies allow launches: in these subnets, in every one of a region without any. */
  launchPlaces: readonly Pick<SetupValues, 'region' | 'subnets'>[];
  /**
   * The only ones that the policies allow to launch: every choice of a plan or a launch is one of `aws.instance_types`.
   */
  instanceTypes: readonly string[];
  partition: Partition;
  bucket: string;
  owner: string;
  /** The user's own tags, on everything that setup makes. */
  tags: Readonly<Record<string, string>>;
  name: string;
  /** The instance profile; its role has the same name. */
  instanceProfile: string;
  /** The VPC; null: that of the first subnet, else the default one. */
  vpcId: string | null;
  subnets: readonly string[];
  mainServer: MainServer;
  listenPort: number;
  /** Port that instances call back at; another one where a proxy is in front of the listener. */
  callbackPort: number;
  /**
   * Setup makes the main server too; `secret` names where its database's address is, null for an SQLite file. Null: it
   * exists.
   */
  ec2MainServer: { secret: string | null } | null;
  /** An existing IAM user that becomes the controller; null: none. */
  controllerUser: string | null;
  /** Days until objects under `runs/` are removed. */
  keepDays: number;
  /** ARN of the user's KMS key for volumes; null for keys of AWS. */
  volumeKey: string | null;
  /** ARN of the user's KMS key for objects, from `aws.sse`; null for keys of AWS. */
  objectKey: string | null;
  image: boolean;
  /** True for the rights of `orchestrator exec`. */
  commands: boolean;
  /** True for the port that `npm run canary` serves its pages at. */
  canary: boolean;
}

/**
 * What is different in another region. A rule cannot name a group of another region, so the main server has an address.
 */
type RegionValues = Pick<SetupValues, 'region' | 'subnets' | 'vpcId'> & {
  mainServer: Extract<MainServer, { kind: 'outside' }>;
};

type TextFlag = 'region' | 'bucket' | 'owner' | 'name' | 'vpc' | 'mainServer' | 'controllerUser' | 'ebsKmsKey';

/** `mainServer` is `vpc`, or addresses such as `203.0.113.7` or `203.0.113.0/24`. */
export type SetupFlags = Partial<Record<TextFlag, string | undefined>> &
  Partial<Pick<SetupValues, 'keepDays' | 'image' | 'commands' | 'canary'>> & { mainServerOn?: 'ec2' };

const DEFAULT_NAME = 'crawlfleet';
const DEFAULT_KEEP_DAYS = 30;
const DEFAULT_CALLBACK_PORT = 8700;
/** Where `npm run canary` serves its pages by default. */
export const CANARY_PORT = 8780;
/** The instance type of the main server that setup makes. */
export const MAIN_SERVER_TYPE = 't4g.small';

/** All values go into policies, HCL and shell lines, so each may contain only the characters of its AWS name. */
const FORMS: [keyof SetupFlags, RegExp, string][] = [
  ['region', REGION, 'must be a region such as ap-northeast-1'],
  ['bucket', BUCKET.form, BUCKET.must],
  ['owner', /^[A-Za-z0-9._:/@+=-]{1,128}$/, 'must be 1 to 128 letters, digits or . _ : / @ + = -'],
  ['name', /^[A-Za-z][A-Za-z0-9-]{0,39}$/, 'must be up to 40 letters, digits or -, beginning with a letter'],
  ['vpc', /^vpc-[0-9a-f]+$/, 'must be the id of a VPC such as vpc-0a1b2c3d'],
  ['controllerUser', /^[A-Za-z0-9+=,.@_-]{1,64}$/, 'must be the name of an IAM user'],
  ['ebsKmsKey', KMS_KEY, 'must be the ARN of a KMS key'],
];

const FLAG_NAMES: Partial<Record<keyof SetupFlags, string>> = {
  controllerUser: '--controller-user',
  ebsKmsKey: '--ebs-kms-key',
};

/** Flags win over the configuration. Throws one `usage` error for all values that are missing or wrong. */
export function setupValues(flags: SetupFlags, config: ConfigValues | null, environment: Environment): SetupValues {
  const aws = config?.aws;
  const region =
    flags.region ??
    aws?.region ??
    aws?.regions?.[0]?.region ??
    (environment.AWS_REGION || environment.AWS_DEFAULT_REGION);
  const bucket = flags.bucket ?? aws?.bucket ?? undefined;
  const owner = flags.owner ?? aws?.owner ?? hostname();
  const name = flags.name ?? DEFAULT_NAME;
  const instanceProfile = aws?.instance_profile ?? `${name}-instance`;
  const entry = aws?.regions?.find((each) => each.region === region);
  const here = entry ?? aws;
  const subnets = here?.subnets ?? [];
  const instanceTypes = aws?.instance_types ?? DEFAULT_INSTANCE_TYPES;
  const others = aws?.regions?.filter((each) => each !== here) ?? [];
  const faults = [
    ...(region === undefined ? ['--region (or aws.region) is missing'] : []),
    ...(bucket === undefined ? ['--bucket (or aws.bucket) is missing'] : []),
    ...formFaults({ ...flags, region, bucket, owner, name }),
    ...(/^[\w+=,.@-]{1,64}$/.test(instanceProfile)
      ? []
      : [`aws.instance_profile ${instanceProfile} is no profile name`]),
    ...[...subnets, ...others.flatMap((each) => each.subnets)]
      .filter((id) => !/^subnet-[\w-]+$/.test(id))
      .map((id) => `${aws?.regions ? 'aws.regions' : 'aws.subnets'}: ${id} is not the id of a subnet`),
    ...instanceTypes
      .filter((type) => !/^[a-z0-9-]+\.[a-z0-9-]+$/.test(type))
      .map((type) => `aws.instance_types: ${type} is not an instance type`),
    ...others.filter((each) => !REGION.test(each.region)).map((each) => `aws.regions: ${each.region} is not a region`),
    ...(flags.vpc !== undefined && entry
      ? ['--vpc applies to one region: name subnets of the VPC in the entries of aws.regions']
      : []),
  ];
  const serverUrl = config?.server.url ?? null;
  const mainServer = mainServerOf(flags.mainServer, serverUrl);
  if (mainServer === null)
    faults.push('--main-server must be vpc, an IPv4 address, or addresses such as 203.0.113.0/24');
  const makesMainServer = flags.mainServerOn !== undefined;
  if (makesMainServer && (mainServer?.kind === 'outside' || flags.controllerUser !== undefined))
    faults.push('--main-server-on makes a main server in the VPC, with a role of its own');
  const address = mainServer?.kind === 'outside' ? mainServer.cidr : addressOf(serverUrl);
  if (others.length > 0 && makesMainServer)
    faults.push('--main-server-on makes a main server that instances of other regions cannot reach');
  else if (others.length > 0 && address === null)
    faults.push(
      `server.url must have the IPv4 address of the main server, which the load balancers of ${others.map((each) => each.region).join(', ')} let in; or name it by --main-server`,
    );
  const secret = config?.database.url.startsWith('sqlite:') ? null : `${name}-database`;
  if (region === undefined || bucket === undefined || mainServer === null || faults.length > 0) {
    throw new AppError('usage', `setup cannot be written: ${faults.join('; ')}`, {
      hint: 'For example: orchestrator setup --region ap-northeast-1 --bucket example-crawl',
    });
  }
  const listenPort = Number(config?.server.listen?.split(':').at(-1) ?? DEFAULT_CALLBACK_PORT);
  return {
    region,
    hasGroups: !aws?.regions || entry !== undefined || mainServer.kind === 'vpc',
    ...(aws?.regions
      ? {
          otherRegions: others.map((each) => ({
            region: each.region,
            subnets: each.subnets,
            vpcId: null,
            mainServer: { kind: 'outside', cidr: address! },
          })),
        }
      : {}),
    launchPlaces: (aws?.regions ?? [{ region, subnets }]).map((each) => ({
      region: each.region,
      subnets: each.subnets,
    })),
    instanceTypes,
    partition: partitionOf(region),
    bucket,
    owner,
    tags: aws?.tags ?? {},
    name,
    instanceProfile,
    vpcId: flags.vpc ?? null,
    subnets,
    mainServer,
    listenPort,
    callbackPort: serverUrl === null ? listenPort : portOf(new URL(serverUrl)),
    ec2MainServer: makesMainServer ? { secret } : null,
    controllerUser: flags.controllerUser ?? null,
    keepDays: flags.keepDays ?? DEFAULT_KEEP_DAYS,
    volumeKey: flags.ebsKmsKey ?? aws?.volume?.kms_key ?? null,
    objectKey: aws?.sse?.startsWith('arn:') ? aws.sse : null,
    image: flags.image ?? (config !== null && config.site.render !== 'http'),
    commands: flags.commands ?? aws?.commands ?? false,
    canary: flags.canary ?? false,
  };
}

const formFaults = (values: SetupFlags): string[] =>
  FORMS.flatMap(([key, form, must]) => {
    const value = values[key];
    return value === undefined || form.test(String(value)) ? [] : [`${FLAG_NAMES[key] ?? `--${key}`} ${must}`];
  });

/**
 * Where the main server is, from the callback URL: a public address is outside; a private one or a name is assumed to
 * be in the VPC.
 */
function mainServerOf(flag: string | undefined, serverUrl: string | null): MainServer | null {
  if (flag === 'vpc') return { kind: 'vpc' };
  if (flag !== undefined) {
    const [address = '', bits = '32', ...more] = flag.split('/');
    if (!isIPv4(address) || more.length > 0 || !/^\d{1,2}$/.test(bits) || Number(bits) > 32) return null;
    return { kind: 'outside', cidr: `${address}/${bits}` };
  }
  const host = serverUrl === null ? '' : new URL(serverUrl).hostname;
  return isIPv4(host) && !isPrivate(host) ? { kind: 'outside', cidr: `${host}/32` } : { kind: 'vpc' };
}

/** The address in the callback URL; null where that has a name, or there is none. */
function addressOf(serverUrl: string | null): string | null {
  const host = serverUrl === null ? '' : new URL(serverUrl).hostname;
  return isIPv4(host) ? `${host}/32` : null;
}

const isPrivate = (address: string): boolean =>
  /^(10|127)\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./.test(address);
