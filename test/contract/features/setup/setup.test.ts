/** The output of `orchestrator setup`, checked and executed by the programs it is for, on an account of moto's. */
import { cpSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type SetupFlags, setupValues } from '../../../../orchestrator/features/setup/values.ts';
import { terraformText } from '../../../../orchestrator/features/setup/terraform.ts';
import { findProgram } from '../../../support/find-program.ts';
import {
  findMotoServer,
  type MotoServer,
  sayMotoIsMissing,
  startMotoServer,
} from '../../../support/endpoints/moto-server.ts';
import { runCommand } from '../../../support/processes.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';
import { NO_TERRAFORM, initTerraform } from '../../../support/terraform.ts';

const LAUNCHER = fileURLToPath(new URL('../../../../bin/orchestrator.js', import.meta.url));
const BASE: SetupFlags = { region: 'ap-northeast-1', bucket: 'example-crawl', owner: 'main-1' };
const VARIANTS: [string, SetupFlags][] = [
  ['a main server in the VPC', { ...BASE, image: true, commands: true, canary: true }],
  ['a laptop with a user of its own', { ...BASE, mainServer: '203.0.113.7', controllerUser: 'alice', image: true }],
  [
    'a main server elsewhere, another VPC, us-east-1',
    { ...BASE, region: 'us-east-1', mainServer: '203.0.113.0/24', vpc: 'vpc-0a1b2c' },
  ],
  ['a main server that setup makes', { ...BASE, mainServerOn: 'ec2' }],
];
const valuesOf = (flags: SetupFlags) => ({
  ...setupValues(flags, null, {}),
  ...(flags === VARIANTS[0]![1]
    ? {
        tags: { CostCenter: '4711', 'team name': 'a b' },
        objectKey: KEY,
        volumeKey: KEY,
        otherRegions: [{ ...OTHER, region: 'us-east-1' }],
      }
    : {}),
  ...(flags === VARIANTS[1]![1]
    ? {
        otherRegions: [
          { ...OTHER, region: 'us-east-1', subnets: ['subnet-0a1b2c'] },
          { ...OTHER, region: 'us-gov-west-1' },
        ],
        // Too many for one policy.
        launchPlaces: ['us-east-1', 'us-gov-west-1'].map((region) => ({ region, subnets: MANY_SUBNETS })),
      }
    : {}),
});
const OTHER = { subnets: [], vpcId: null, mainServer: { kind: 'outside' as const, cidr: '203.0.113.7/32' } };
const MANY_SUBNETS = Array.from({ length: 25 }, (_, i) => `subnet-0123456789abcde${10 + i}`);
const KEY = 'arn:aws:kms:ap-northeast-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const KEYS = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };

let folder: TempDir;
let moto: MotoServer | null = null;
beforeEach(() => {
  folder = tempDir();
});
afterEach(async () => {
  await moto?.stop();
  moto = null;
  folder.remove();
});

const put = (name: string, text: string): string => {
  writeFileSync(folder.file(name), text);
  return folder.file(name);
};
async function startMoto(): Promise<MotoServer | null> {
  const program = await findMotoServer();
  if (program === null) sayMotoIsMissing('what setup prints, carried out');
  return program === null ? null : startMotoServer(program);
}
const leaveOut = (skip: (note: string) => never, note: string): never => {
  console.error(note);
  return skip(note);
};

describe('as Terraform', () => {
  it('is filled into files that are valid themselves', { timeout: 300_000, tags: ['nightly'] }, async ({ skip }) => {
    cpSync(fileURLToPath(new URL('../../../../deploy/terraform', import.meta.url)), folder.path, { recursive: true });
    const terraform = await initTerraform(folder.path);
    if (!terraform) return leaveOut(skip, NO_TERRAFORM);
    expect((await terraform('fmt', '-check', '-diff', '-no-color')).stdout).toBe('');
    const { exitCode, stdout, stderr } = await terraform('validate', '-no-color');
    expect(exitCode, stdout + stderr).toBe(0);
  });

  it('matches the output of terraform fmt, and is valid', { timeout: 300_000, tags: ['nightly'] }, async ({ skip }) => {
    put('crawlfleet.tf', terraformText(valuesOf(VARIANTS[0]![1])));
    const terraform = await initTerraform(folder.path);
    if (!terraform) return leaveOut(skip, NO_TERRAFORM);
    for (const [name, flags] of VARIANTS) {
      put('crawlfleet.tf', terraformText(valuesOf(flags)));
      expect((await terraform('fmt', '-check', '-diff', '-no-color')).stdout, name).toBe('');
      const { exitCode, stdout, stderr } = await terraform('validate', '-no-color');
      expect(exitCode, `${name}: ${stdout}${stderr}`).toBe(0);
    }
  });

  it(
    'is applied without an error, and makes what it lists',
    { timeout: 300_000, tags: ['nightly'] },
    async ({ skip }) => {
      put('crawlfleet.tf', terraformText(valuesOf(VARIANTS[0]![1])));
      put(
        'test_override.tf',
        'provider "aws" {\n  skip_credentials_validation = true\n  s3_use_path_style = true\n}\n',
      );
      moto = await startMoto();
      if (!moto) return skip('no moto_server');
      const terraform = await initTerraform(folder.path, { ...KEYS, AWS_ENDPOINT_URL: moto.endpoint });
      if (!terraform) return leaveOut(skip, NO_TERRAFORM);
      const applied = await terraform('apply', '-auto-approve', '-input=false', '-no-color');
      expect(applied.exitCode, applied.stdout + applied.stderr).toBe(0);
      expect(applied.stdout).toContain('instance_profile: crawlfleet-instance');
      await expectMade(moto);
      // Existing resources are left unchanged.
      expect((await terraform('plan', '-detailed-exitcode', '-input=false', '-no-color')).exitCode).toBe(0);
    },
  );
});

async function aws(at: MotoServer, line: string, region = BASE.region!): Promise<unknown> {
  const env = { ...KEYS, AWS_ENDPOINT_URL: at.endpoint, AWS_REGION: region, AWS_DEFAULT_REGION: region, AWS_PAGER: '' };
  const { exitCode, stdout, stderr } = await runCommand('aws', [...line.split(' '), '--output', 'json'], { env });
  expect(exitCode, stderr).toBe(0);
  return JSON.parse(stdout);
}

interface Groups {
  SecurityGroups: {
    GroupId: string;
    IpPermissions: { FromPort: number; UserIdGroupPairs: { GroupId: string }[]; IpRanges: { CidrIp: string }[] }[];
    Tags?: { Key: string; Value: string }[];
  }[];
}

/** Groups with the right rules, by their tags, and policies that an account accepts. */
async function expectMade(at: MotoServer): Promise<void> {
  if (!(await findProgram('aws'))) return;
  const lifecycle = await aws(at, 's3api get-bucket-lifecycle-configuration --bucket example-crawl');
  expect(JSON.stringify(lifecycle)).toContain('"Prefix":"runs/"');
  expect(await letInOf(at, BASE.region!)).toEqual({
    instance: [[8080, ['balancer', 'main']]],
    balancer: [[8080, ['main']]],
    main: [
      [8700, ['instance']],
      [8780, ['instance']],
    ],
  });
  expect(await letInOf(at, 'us-east-1')).toEqual({
    instance: [[8080, ['balancer']]],
    balancer: [[8080, ['203.0.113.7/32']]],
  });
  const policies = (await aws(at, 'iam list-policies --scope Local')) as {
    Policies: { PolicyName: string }[];
  };
  expect(policies.Policies.map((p) => p.PolicyName).toSorted()).toEqual([
    'crawlfleet-commands',
    'crawlfleet-controller',
    'crawlfleet-image',
    'crawlfleet-sse',
    'crawlfleet-volumes',
  ]);
  const inline = await aws(at, 'iam list-role-policies --role-name crawlfleet-instance');
  expect(inline).toMatchObject({
    PolicyNames: expect.arrayContaining(['encrypt-results', 'put-results', 'take-commands']) as string[],
  });
  const profile = await aws(at, 'iam get-instance-profile --instance-profile-name crawlfleet-instance');
  expect(JSON.stringify(profile)).toContain('role/crawlfleet-instance');
}

/** Sources of the groups in this region, by role and port. */
async function letInOf(at: MotoServer, region: string): Promise<unknown> {
  const { SecurityGroups } = (await aws(at, 'ec2 describe-security-groups', region)) as Groups;
  const roleOf = (id: string | undefined): string | undefined =>
    SecurityGroups.find((g) => g.GroupId === id)?.Tags?.find((t) => t.Key === 'crawlfleet:role')?.Value;
  const letIn = SecurityGroups.filter((g) => roleOf(g.GroupId)).map((g) => [
    roleOf(g.GroupId),
    g.IpPermissions.toSorted((a, b) => a.FromPort - b.FromPort).map((p) => [
      p.FromPort,
      [...p.UserIdGroupPairs.map((u) => roleOf(u.GroupId) ?? ''), ...p.IpRanges.map((range) => range.CidrIp)].sort(
        (a, b) => a.localeCompare(b),
      ),
    ]),
  ]);
  return Object.fromEntries(letIn);
}

describe('the command', () => {
  it('prints one document with --json, and writes a file with --out that only setup itself may replace', async () => {
    const setup = (...args: string[]) =>
      runCommand(process.execPath, [LAUNCHER, 'setup', '--config', folder.file('none.yaml'), ...args], {
        cwd: folder.path,
      });
    const flags = ['--region', 'ap-northeast-1', '--bucket', 'example-crawl', '--owner', 'main-1'];
    const { exitCode, stdout } = await setup(...flags, '--json', '--out', folder.path);
    expect(exitCode).toBe(0);
    const document = JSON.parse(stdout) as { resources: { kind: string }[]; written: string };
    expect(document.resources.map((r) => r.kind)).toContain('instance-profile');
    expect((await setup(...flags, '--out', folder.path)).exitCode).toBe(0);
    put('crawlfleet.tf', '# my own\n');
    expect(await setup(...flags, '--out', folder.path)).toMatchObject({ exitCode: 2 });
    expect(await setup()).toMatchObject({ exitCode: 2 });
  });
});
