/**
 * What becomes of a run for each right of the printed policies that is missing: makes docs/rights.md with `-u`, and
 * fails where it differs. The runs are in memory and last minutes; `doctor` asks a sandbox.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type BalancerPart, PartsLeft } from '../../../orchestrator/core/cloud/load-balancer.ts';
import { buildReport } from '../../../orchestrator/core/act/results/finish.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { type DoctorStage, KEYS, openDoctorStage } from '../cli/doctor-stage.ts';
import type { RunShape } from './run-stage.ts';
import { WholeRun } from './whole-run.ts';

const PAGE = new URL('../../../docs/rights.md', import.meta.url);
const SHAPE = { products: 120, instances: 2, chunkSize: 3, deadlineMs: 480_000, intervalMs: 1_000 } satisfies RunShape;
type BalancerMethod = 'ensure' | 'isActive' | 'register' | 'health' | 'deregister' | 'remove' | 'removeByName' | 'find';

/** What a right is needed for. */
interface Needed {
  /** The call of a run, as the SDK names it. Default: as in the name of the right. */
  command?: string;
  /** The calls that `doctor` asks with. Default: as in the name of the right. */
  asks?: string[];
  /** Makes the closed world refuse it from now on. Null: no run makes the call once it has been started. */
  refuse: ((whole: WholeRun, message: string) => void) | null;
}

const beforeTheStart = (...asks: string[]): Needed => ({ refuse: null, ...(asks.length > 0 ? { asks } : {}) });

const compute = (method: 'list' | 'terminate' | 'consoleOutput'): Needed => ({
  refuse: ({ cloud }, message) => {
    cloud.compute.onCall = ({ name }) => {
      if (name === method) throw new AppError('aws-denied', message);
    };
  },
});

/** ELBv2 refuses these, before they change anything. */
const balancer = (methods: readonly BalancerMethod[], command?: string): Needed => ({
  ...(command === undefined ? {} : { command }),
  refuse: ({ cloud }, message) => {
    cloud.balancers.onCall = ({ name }) => {
      if ((methods as readonly string[]).includes(name)) throw new AppError('aws-denied', message);
    };
  },
});

/** ELBv2 refuses it after other parts of the balancer were made. */
const laterPart = (more: readonly BalancerMethod[] = []): Needed => ({
  refuse: (whole, message) => {
    const { balancers } = whole.cloud;
    const ensure = balancers.ensure.bind(balancers);
    balancers.ensure = async (request) => {
      await ensure(request);
      throw new AppError('aws-denied', message);
    };
    balancer(more).refuse!(whole, message);
  },
});

const deletion = (part: BalancerPart): Needed => ({
  refuse: ({ cloud }, message) => {
    cloud.balancers.onCall = ({ name }) => {
      if (name === 'remove' || name === 'removeByName') throw new PartsLeft('aws-denied', message, [part]);
    };
  },
});

const launch: Needed = {
  command: 'RunInstances',
  asks: ['RunInstances'],
  refuse: ({ cloud }, message) => (cloud.compute.refusalOf = () => ({ kind: 'refused', cause: 'denied', message })),
};

/** EC2 accepts the launch, and ends the instance at once. */
const volumeKey: Needed = {
  asks: [],
  refuse: ({ cloud }) =>
    (cloud.compute.deathAtLaunch = {
      code: 'Client.InvalidKMSKey.InvalidState',
      message: 'Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state',
    }),
};

type Operation = 'put' | 'get' | 'list' | 'exists';
const objects = (
  command: string,
  isRefused: (operation: Operation, key: string, whole: WholeRun) => boolean,
  asks = [command],
): Needed => ({
  command,
  asks,
  refuse: (whole, message) => {
    whole.cloud.objects.onCall = (operation, key) => {
      if (isRefused(operation, key, whole))
        throw Object.assign(new Error(`AccessDenied: ${message}`), { name: 'AccessDenied' });
    };
  },
});
/** What lies in the folder of a role session. */
const isOfInstance = (key: string): boolean => key.includes('/AROA');

const mainPut = objects('PutObject', (operation, key) => operation === 'put' && !isOfInstance(key));
const instancePut = objects('PutObject', (operation, key) => operation === 'put' && isOfInstance(key), []);
const read = objects('GetObject', (operation) => operation === 'get' || operation === 'exists');

const makesBalancer = (): Needed => balancer(['ensure'], 'CreateLoadBalancer');

/** By policy and right; the policies that no run uses (image, commands, main-server) are left out. */
const RIGHTS: Record<string, Record<string, Needed>> = {
  controller: {
    'ec2:DescribeAccountAttributes': makesBalancer(),
    'ec2:DescribeAddresses': makesBalancer(),
    'ec2:DescribeImages': beforeTheStart(),
    'ec2:DescribeInstances': compute('list'),
    'ec2:DescribeInternetGateways': makesBalancer(),
    'ec2:DescribeRouteTables': beforeTheStart(),
    'ec2:DescribeSecurityGroups': makesBalancer(),
    'ec2:DescribeSubnets': makesBalancer(),
    'ec2:DescribeVpcs': balancer(['ensure'], 'CreateTargetGroup'),
    'ec2:GetEbsDefaultKmsKeyId': beforeTheStart(),
    'ec2:GetEbsEncryptionByDefault': beforeTheStart(),
    'ec2:GetSecurityGroupsForVpc': makesBalancer(),
    'elasticloadbalancing:DescribeListeners': laterPart(),
    'elasticloadbalancing:DescribeLoadBalancers': laterPart(['isActive', 'removeByName', 'find']),
    // Only gc asks for tags.
    'elasticloadbalancing:DescribeTags': beforeTheStart(),
    'elasticloadbalancing:DescribeTargetGroups': balancer(['ensure', 'removeByName']),
    'elasticloadbalancing:DescribeTargetHealth': balancer(['health']),
    'pricing:GetProducts': beforeTheStart(),
    'servicequotas:GetServiceQuota': beforeTheStart(),
    'ec2:RunInstances': launch,
    'ec2:CreateTags': launch,
    'ec2:GetConsoleOutput': compute('consoleOutput'),
    'ec2:TerminateInstances': compute('terminate'),
    'iam:PassRole': launch,
    'elasticloadbalancing:CreateListener': laterPart(),
    'elasticloadbalancing:CreateLoadBalancer': makesBalancer(),
    'elasticloadbalancing:CreateTargetGroup': balancer(['ensure']),
    'elasticloadbalancing:AddTags': balancer(['ensure'], 'CreateTargetGroup'),
    'elasticloadbalancing:DeleteListener': deletion('listener'),
    'elasticloadbalancing:DeleteLoadBalancer': deletion('load balancer'),
    'elasticloadbalancing:DeleteTargetGroup': deletion('target group'),
    'elasticloadbalancing:DeregisterTargets': balancer(['deregister']),
    // The adapter goes on without it: targets leave five minutes later.
    'elasticloadbalancing:ModifyTargetGroupAttributes': { refuse: () => undefined },
    'elasticloadbalancing:RegisterTargets': balancer(['register']),
    'iam:CreateServiceLinkedRole': makesBalancer(),
    's3:GetBucketLocation': beforeTheStart(),
    's3:GetBucketPublicAccessBlock': beforeTheStart('GetPublicAccessBlock'),
    's3:GetEncryptionConfiguration': beforeTheStart('GetBucketEncryption'),
    's3:GetLifecycleConfiguration': beforeTheStart('GetBucketLifecycleConfiguration'),
    's3:ListBucket': objects('ListObjectsV2', (operation) => operation === 'list', ['HeadBucket', 'ListObjectsV2']),
    's3:GetObject': read,
    's3:PutObject': mainPut,
  },
  instance: { 's3:PutObject': instancePut },
  sse: { 'kms:Decrypt': read, 'kms:GenerateDataKey': mainPut },
  'instance-sse': { 'kms:GenerateDataKey': instancePut },
  volumes: {
    'kms:Decrypt': volumeKey,
    'kms:DescribeKey': volumeKey,
    'kms:GenerateDataKeyWithoutPlaintext': volumeKey,
    'kms:ReEncryptFrom': volumeKey,
    'kms:ReEncryptTo': volumeKey,
    'kms:CreateGrant': volumeKey,
  },
};

type Shortened = { right: string; call: string };

/** The names of one run, and what its table shows anyway, are left out. */
const shorten = (text: string, { right, call }: Shortened): string =>
  text
    .replaceAll(/(AccessDenied: )?\w+ at AWS failed: not authorized to perform: [\w:]+/g, `${call}: …`)
    .replaceAll(/\bcf-\S+/g, 'cf-…')
    .replaceAll(/\bi-[0-9a-f]{17}/g, 'i-…')
    .replaceAll(/\b\d+ (?=products|instances)/g, '… ')
    .replaceAll(right, '…');

/**
 * How a run ends without the right: its exit code and its reason, which has what it leaves behind. Checks that it is an
 * orderly end.
 */
async function endWithout(right: string, needed: Needed, when: 'start' | 'mid-run'): Promise<string> {
  if (needed.refuse === null) return '-';
  const call = needed.command ?? right.split(':')[1]!;
  const message = `${call} at AWS failed: not authorized to perform: ${right}`;
  const whole = await WholeRun.open(SHAPE);
  if (when === 'start') needed.refuse(whole, message);
  await whole.start();
  if (when === 'mid-run') {
    await whole.until('some rows', async () => (await whole.outcomes()).stored >= 5);
    needed.refuse(whole, message);
    // A replacement is needed then, and the main server reads and closes what the first one has left.
    whole.cloud.compute.kill(whole.fleet.instances[0]!.id);
  }
  await whole.untilEnd(SHAPE.deadlineMs);
  const { exitCode, reason } = whole.record();
  const { leftBehind = [] } = await buildReport(whole.server!.core);
  const remains = [...whole.cloud.compute.alive().map((i) => i.id), ...whole.cloud.balancers.names()];
  const told = [reason ?? '', ...whole.server!.alarms].join('\n');
  expect(
    remains.filter((name) => !leftBehind.join('\n').includes(name)),
    'remains, and is not named',
  ).toEqual([]);
  if (exitCode === 0) {
    expect(leftBehind).toEqual([]);
    return told === '' ? '0' : '0, with an alarm';
  }
  expect(told).toMatch(/not authorized to perform|s3:PutObject|KMS/);
  expect([4, 19]).toContain(exitCode);
  return `${exitCode}: ${shorten(reason!, { right, call })}`;
}

/** The checks of `doctor` that find it missing. */
async function foundByDoctor(right: string, { asks = [right.split(':')[1]!] }: Needed): Promise<string> {
  const code = right.startsWith('ec2:') ? 'UnauthorizedOperation' : 'AccessDenied';
  await stage.fault(...asks.map((action) => ({ what: 'error', action, code, status: 403, count: 1_000 })));
  const { checks } = await stage.doctor();
  await stage.calm();
  const found = checks.filter(({ level, text }) => level !== 'ok' && !standing.has(text));
  return (
    [
      ...new Set(
        found.map(({ id, level }) => `${level === 'failed' ? '**' : ''}\`${id}\`${level === 'failed' ? '**' : ''}`),
      ),
    ].join(', ') || '-'
  );
}

let stage: DoctorStage;
/** What `doctor` says anyway. */
let standing: Set<string>;

beforeAll(async () => {
  for (const [name, value] of Object.entries(KEYS)) vi.stubEnv(name, value);
  stage = await openDoctorStage();
  standing = new Set((await stage.doctor()).checks.map(({ text }) => text));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await stage.close();
});

async function rowOf(right: string, needed: Needed): Promise<string> {
  const ends = [await endWithout(right, needed, 'start'), await endWithout(right, needed, 'mid-run')];
  return `| \`${right}\` | ${[await foundByDoctor(right, needed), ...ends].join(' | ')} |`;
}

const INTRODUCTION = readFileSync(PAGE, 'utf8').split('\n## ')[0]!;

it('every right of the policies for a run has its row, and no other', () => {
  for (const [policy, rights] of Object.entries(RIGHTS)) {
    const text = readFileSync(new URL(`../../../deploy/policies/${policy}.json`, import.meta.url), 'utf8');
    const { Statement } = JSON.parse(text) as { Statement: { Action: string | string[] }[] };
    expect(Object.keys(rights).toSorted()).toEqual([...new Set(Statement.flatMap((s) => s.Action))].toSorted());
  }
});

describe('without a right of a run', () => {
  it.each(['ec2:RunInstances', 'elasticloadbalancing:DeleteLoadBalancer', 's3:GetObject'])(
    '%s: doctor and the run are as docs/rights.md says',
    async (right) => {
      expect(readFileSync(PAGE, 'utf8').split('\n')).toContain(await rowOf(right, RIGHTS.controller![right]!));
    },
  );

  it('docs/rights.md says what becomes of the run', { tags: ['nightly'], timeout: 1_200_000 }, async () => {
    const lines = [INTRODUCTION.trimEnd()];
    for (const [policy, rights] of Object.entries(RIGHTS)) {
      lines.push(
        '',
        `## ${policy}.json`,
        '',
        '| Right | `doctor` | Missing from the start | Lost in mid-run |',
        '|---|---|---|---|',
      );
      for (const [right, needed] of Object.entries(rights)) lines.push(await rowOf(right, needed));
    }
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(fileURLToPath(PAGE));
  });
});
