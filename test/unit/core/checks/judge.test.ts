/** The rules of the checks before a run, applied to what AWS returns. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../shared/domain/errors.ts';
import type { SecurityGroup } from '../../../../orchestrator/core/cloud/group-rules.ts';
import { type RouteTable, wayOut } from '../../../../orchestrator/core/cloud/route-tables.ts';
import { judgeBucket } from '../../../../orchestrator/core/checks/bucket.ts';
import { judgeAddress, judgeDoor } from '../../../../orchestrator/core/checks/callback.ts';
import type { Finding } from '../../../../orchestrator/core/checks/check.ts';
import { keysEndEarly, judgeRights } from '../../../../orchestrator/core/checks/account.ts';
import { judgeVolumeKey } from '../../../../orchestrator/core/checks/image.ts';
import { isOlder } from '../../../../orchestrator/core/checks/machine.ts';
import { judgeCertificate, judgeGroups, judgeSubnets } from '../../../../orchestrator/core/checks/network.ts';

const levels = (findings: readonly Finding[]): string[] => findings.map((f) => f.level);
const texts = (findings: readonly Finding[]): string => findings.map((f) => f.text).join('\n');

const local = { DestinationCidrBlock: '10.0.0.0/16', GatewayId: 'local' };
const everything = (way: object): object => ({ DestinationCidrBlock: '0.0.0.0/0', State: 'active', ...way });
const table = (routes: object[], associations: object[]): RouteTable => ({
  Routes: [local, ...routes],
  Associations: associations,
});
const MAIN = { Main: true };

describe('the KMS key of volumes', () => {
  const KEY = 'arn:aws:kms:eu-west-1:123456789012:key/k';

  it("is a warning when it is the account's default, and not repeated by runs when aws.volume names it", () => {
    expect(judgeVolumeKey(null, null).level).toBe('ok');
    expect(judgeVolumeKey(null, KEY)).toMatchObject({
      level: 'warning',
      remedy: expect.stringContaining(`--ebs-kms-key ${KEY}`) as string,
    });
    expect(judgeVolumeKey(KEY, KEY)).toMatchObject({ level: 'warning', standing: true });
  });
});

it.each([
  [null, []],
  ['arn:aws:acm:eu-west-1:123456789012:certificate/c', []],
  ['arn:aws:iam::123456789012:server-certificate/c', []],
  ['arn:aws:acm:us-east-1:123456789012:certificate/c', ['failed']],
])('the certificate %s for a balancer in eu-west-1 is %j', (arn, expected) => {
  expect(levels(judgeCertificate(arn, 'eu-west-1'))).toEqual(expected);
});

describe('keys in the environment', () => {
  const UNTIL = Date.parse('2026-01-01T06:00:00Z');
  const keys = (ends: string) => ({ AWS_ACCESS_KEY_ID: 'a', AWS_CREDENTIAL_EXPIRATION: ends });

  it('are a warning when they expire before the run ends, and only then', () => {
    const early = keysEndEarly(keys('2026-01-01T05:59:00Z'), UNTIL);
    expect(early).toMatchObject({ level: 'warning' });
    expect(early!.text).toContain('2026-01-01T05:59:00.000Z');
    expect(keysEndEarly(keys('2026-01-01T06:00:00Z'), UNTIL)).toBeNull();
    expect(keysEndEarly({ AWS_ACCESS_KEY_ID: 'a' }, UNTIL)).toBeNull();
    // The SDK rotates a role's keys.
    expect(keysEndEarly({ AWS_CREDENTIAL_EXPIRATION: '2026-01-01T05:59:00Z' }, UNTIL)).toBeNull();
  });
});

describe('the default route of a subnet', () => {
  it.each<[string, object[], string]>([
    ['an internet gateway', [everything({ GatewayId: 'igw-1' })], 'internet'],
    ['a NAT gateway', [everything({ NatGatewayId: 'nat-1' })], 'nat'],
    ['a NAT instance', [everything({ InstanceId: 'i-1', NetworkInterfaceId: 'eni-1' })], 'nat'],
    ['a transit gateway', [everything({ TransitGatewayId: 'tgw-1' })], 'other'],
    ['a virtual private gateway', [everything({ GatewayId: 'vgw-1' })], 'other'],
    ['a gateway that is gone', [everything({ GatewayId: 'igw-1', State: 'blackhole' })], 'none'],
    ['IPv6 alone', [{ DestinationIpv6CidrBlock: '::/0', GatewayId: 'igw-1' }], 'none'],
    ['nothing', [], 'none'],
    ['S3 alone', [{ DestinationPrefixListId: 'pl-1', GatewayId: 'vpce-1', State: 'active' }], 'none'],
    [
      'the address space in two halves',
      ['0.0.0.0/1', '128.0.0.0/1'].map((DestinationCidrBlock) => ({ DestinationCidrBlock, GatewayId: 'igw-1' })),
      'other',
    ],
    ['a prefix list', [{ DestinationPrefixListId: 'pl-2', NatGatewayId: 'nat-1', State: 'active' }], 'other'],
  ])('through %s', (_, routes, kind) => {
    expect(wayOut([table(routes, [MAIN])], 'subnet-a').kind).toBe(kind);
  });

  it('uses the table of the subnet before the main table', () => {
    const tables = [
      table([everything({ GatewayId: 'igw-1' })], [MAIN]),
      table([everything({ NatGatewayId: 'nat-1' })], [{ SubnetId: 'subnet-b' }]),
    ];
    expect(wayOut(tables, 'subnet-a').kind).toBe('internet');
    expect(wayOut(tables, 'subnet-b')).toEqual({ kind: 'nat', target: 'nat-1' });
  });

  it('does not exist without a route table', () => {
    expect(wayOut([], 'subnet-a')).toEqual({ kind: 'none', target: null });
  });
});

describe('subnets', () => {
  const subnet = (id: string, zone: string) => ({ id, zone, vpcId: 'vpc-1', publicAddresses: true });
  const two = [subnet('a', 'z1'), subnet('b', 'z2')];

  it('pass in two zones behind an internet gateway', () => {
    expect(levels(judgeSubnets(two, [table([everything({ GatewayId: 'igw-1' })], [MAIN])], true))).toEqual([
      'ok',
      'ok',
    ]);
  });

  it('fail for those behind a NAT, and only those', () => {
    const tables = [
      table([everything({ GatewayId: 'igw-1' })], [MAIN]),
      table([everything({ NatGatewayId: 'nat-1' })], [{ SubnetId: 'b' }]),
    ];
    const found = judgeSubnets(two, tables, true);
    expect(levels(found)).toEqual(['ok', 'failed']);
    expect(found[1]!.text).toMatch(/one address.*: b \(nat-1\)$/);
  });

  it('without a gateway fail on AWS, and warn on an emulator, which needs none', () => {
    expect(levels(judgeSubnets(two, [table([], [MAIN])], true))).toEqual(['ok', 'failed']);
    expect(levels(judgeSubnets(two, [table([], [MAIN])], false))).toEqual(['ok', 'warning']);
  });

  it('fail in a single zone', () => {
    const one = [subnet('a', 'z1'), subnet('b', 'z1')];
    expect(judgeSubnets(one, [table([everything({ GatewayId: 'igw-1' })], [MAIN])], true)[0]!.level).toBe('failed');
  });
});

describe('security groups', () => {
  const anywhere = [{ CidrIp: '0.0.0.0/0' }];
  const out = { IpProtocol: '-1', IpRanges: anywhere };
  const tcp = (port: number, from: object) => ({ IpProtocol: 'tcp', FromPort: port, ToPort: port, ...from });
  const group = (GroupId: string, ingress: object[], egress: object[] = [out]): SecurityGroup => ({
    GroupId,
    IpPermissions: ingress,
    IpPermissionsEgress: egress,
  });
  const from = (id: string) => ({ UserIdGroupPairs: [{ GroupId: id }] });
  const open = group('sg-b', [tcp(8080, { IpRanges: [{ CidrIp: '198.51.100.7/32' }] })]);

  type More = { balancer?: SecurityGroup[]; sitePort?: number };
  it.each<[string, SecurityGroup, RegExp, More?]>([
    ['pass when they admit the balancer', group('sg-i', [tcp(8080, from('sg-b'))]), /gets in on port 8080/],
    ['pass when a range admits it', group('sg-i', [tcp(8080, { IpRanges: [{ CidrIp: '10.0.0.0/16' }] })]), /gets in/],
    [
      'pass with any source for an unknown balancer',
      group('sg-i', [tcp(8080, from('sg-x'))]),
      /gets in/,
      { balancer: [] },
    ],
    ['fail when no source is allowed', group('sg-i', [tcp(22, from('sg-b'))]), /lets the balancer reach/],
    ['fail when they admit only another group', group('sg-i', [tcp(8080, from('sg-x'))]), /lets the balancer reach/],
    ['warn when they admit every address', group('sg-i', [tcp(8080, { IpRanges: anywhere })]), /open to the world/],
    [
      'fail when no source reaches the balancer',
      group('sg-i', [tcp(8080, from('sg-b'))]),
      /reach the balancer on port/,
      { balancer: [group('sg-b', [])] },
    ],
    [
      'fail when they block outgoing traffic to S3',
      group('sg-i', [tcp(8080, from('sg-b'))], []),
      /lets nothing out on port 443/,
    ],
    [
      'warn when another outgoing rule may lead to S3',
      group('sg-i', [tcp(8080, from('sg-b'))], [tcp(443, { PrefixListIds: [{ PrefixListId: 'pl-s3' }] })]),
      /may let nothing out on port 443/,
    ],
    [
      'fail when they block outgoing traffic to the site',
      group('sg-i', [tcp(8080, from('sg-b'))], [tcp(443, { IpRanges: anywhere })]),
      /lets nothing out on port 8443/,
      { sitePort: 8443 },
    ],
  ])('%s', (name, instances, text, { balancer = [open], sitePort = 443 } = {}) => {
    const found = judgeGroups({ instances: [instances], balancer, here: [] }, [sitePort]);
    expect(texts(found)).toMatch(text);
    expect(levels(found).includes('failed')).toBe(name.startsWith('fail '));
    // An emulator does not enforce security groups.
    const emulated = judgeGroups({ instances: [instances], balancer, here: [], isFaithful: false }, [sitePort]);
    expect(levels(emulated)).not.toContain('failed');
  });
});

describe('the path from this machine to the instances, without a balancer', () => {
  const group = (...sources: object[]): SecurityGroup => ({
    GroupId: 'sg-i',
    IpPermissions: sources.map((source) => ({ IpProtocol: 'tcp', FromPort: 8080, ToPort: 8080, ...source })),
    IpPermissionsEgress: [{ IpProtocol: '-1', IpRanges: [{ CidrIp: '0.0.0.0/0' }] }],
  });
  const judge = (instances: SecurityGroup): Finding[] =>
    judgeGroups({ instances: [instances], balancer: null, here: ['sg-main'], addresses: ['10.0.0.5'] }, [443]);

  it('is open by its group or its address', () => {
    expect(levels(judge(group({ UserIdGroupPairs: [{ GroupId: 'sg-main' }] })))).toEqual(['ok']);
    expect(levels(judge(group({ IpRanges: [{ CidrIp: '10.0.0.0/16' }] })))).toEqual(['ok']);
  });

  it('is shut where the balancer alone may connect', () => {
    const found = judge(group({ UserIdGroupPairs: [{ GroupId: 'sg-balancer' }] }));
    expect(levels(found)).toEqual(['failed']);
    expect(texts(found)).toContain('reach the instances on port 8080');
    expect(found[0]).toMatchObject({ remedy: expect.stringContaining('--port 8080 --source-group sg-main') });
  });
});

describe('the path from this machine to the balancer', () => {
  const anywhere = [{ CidrIp: '0.0.0.0/0' }];
  const all = { IpProtocol: '-1', IpRanges: anywhere };
  /** The default group of every VPC. */
  const byDefault: SecurityGroup = {
    GroupId: 'sg-d',
    IpPermissions: [{ IpProtocol: '-1', UserIdGroupPairs: [{ GroupId: 'sg-d' }] }],
    IpPermissionsEgress: [all],
  };
  const letting = (from: object): SecurityGroup => ({ ...byDefault, IpPermissions: [{ IpProtocol: '-1', ...from }] });
  const main = letting({ UserIdGroupPairs: [{ GroupId: 'sg-main' }] });
  const judge = (balancer: SecurityGroup, here: string[]): Finding[] =>
    judgeGroups(
      { instances: [byDefault, letting({ IpRanges: [{ CidrIp: '10.0.0.0/8' }] })], balancer: [balancer], here },
      [443],
    );

  it.each<[string, SecurityGroup, string[]]>([
    ['the default group, which it is in', byDefault, ['sg-d']],
    ['a group that admits one of its groups', main, ['sg-ssh', 'sg-main']],
    ['a group that admits a group, when its own are unknown: it may connect through a VPN', main, []],
    ['a group that admits addresses', letting({ IpRanges: [{ CidrIp: '203.0.113.7/32' }] }), []],
    [
      'a group that admits addresses, from inside the VPC',
      letting({ IpRanges: [{ CidrIp: '10.0.0.0/16' }] }),
      ['sg-ssh'],
    ],
  ])('is open with %s', (_, balancer, here) => {
    expect(texts(judge(balancer, here))).not.toContain('reach the balancer');
  });

  it.each<[string, SecurityGroup, string[], RegExp]>([
    ['the default group, from outside the VPC', byDefault, [], /--group-id sg-d .*--cidr ADDRESS/],
    ['the default group, which it is not in', byDefault, ['sg-ssh'], /--group-id sg-d .*--source-group sg-ssh/],
    ['the group from setup, which it is not in', main, ['sg-ssh'], /groups that orchestrator setup makes/],
  ])('is closed with %s', (_, balancer, here, remedy) => {
    const found = judge(balancer, here);
    // A failure only for a machine in the VPC, because its groups are known.
    expect(levels(found)).toEqual([here.length > 0 ? 'failed' : 'warning']);
    expect(found[0]).toMatchObject({
      text: expect.stringContaining('lets this machine reach the balancer') as string,
      remedy: expect.stringMatching(remedy) as string,
    });
  });
});

describe('the addresses admitted to the balancer', () => {
  const all = { IpProtocol: '-1', IpRanges: [{ CidrIp: '0.0.0.0/0' }] };
  const instances: SecurityGroup = {
    GroupId: 'sg-i',
    IpPermissions: [{ IpProtocol: '-1', IpRanges: [{ CidrIp: '10.0.0.0/8' }] }],
    IpPermissionsEgress: [all],
  };
  const letting = (...CidrIp: string[]): SecurityGroup => ({
    GroupId: 'sg-b',
    IpPermissions: [{ IpProtocol: '-1', IpRanges: CidrIp.map((each) => ({ CidrIp: each })) }],
    IpPermissionsEgress: [all],
  });
  const outside = (ranges: string[], server: string | null) =>
    judgeGroups({ instances: [instances], balancer: [letting(...ranges)], here: [], server }, [443]);
  const inside = (ranges: string[], addresses: string[]) =>
    judgeGroups({ instances: [instances], balancer: [letting(...ranges)], here: ['sg-m'], addresses }, [443]);

  it.each<[string, Finding[], string]>([
    ['include the one in server.url', outside(['203.0.113.0/24'], '203.0.113.7'), 'ok'],
    ['are all addresses', outside(['0.0.0.0/0'], '203.0.113.7'), 'ok'],
    ['are others, and that of this machine is unknown', outside(['198.51.100.7/32'], null), 'ok'],
    [
      'are others than that in server.url, which is probably wrong',
      outside(['198.51.100.7/32'], '203.0.113.7'),
      'warning',
    ],
    ['are others, in the VPC', inside(['198.51.100.7/32'], ['10.0.1.5', '203.0.113.7']), 'failed'],
    ['include the private one, in the VPC', inside(['10.0.0.0/16'], ['10.0.1.5']), 'ok'],
    ['include the public one, in the VPC', inside(['203.0.113.7/32'], ['10.0.1.5', '203.0.113.7']), 'ok'],
  ])('%s', (_, found, level) => {
    expect(levels(found)).toEqual([level]);
  });

  it('are reported with the remedy', () => {
    const [finding] = outside(['198.51.100.7/32'], '203.0.113.7');
    expect(finding).toMatchObject({
      text: expect.stringContaining('lets this machine (203.0.113.7) reach') as string,
      remedy: expect.stringMatching(/--cidr 203\.0\.113\.7\/32$/) as string,
    });
  });
});

describe('the path from instances to this machine', () => {
  const letting = (from: object, port = 8700): SecurityGroup => ({
    GroupId: 'sg-m',
    IpPermissions: [{ IpProtocol: 'tcp', FromPort: port, ToPort: port, ...from }],
  });
  const instances = { UserIdGroupPairs: [{ GroupId: 'sg-i' }] };
  const everybody = { IpRanges: [{ CidrIp: '0.0.0.0/0' }] };
  const judge = (group: SecurityGroup, isPrivate: boolean): Finding =>
    judgeDoor({ groups: [group], port: 8700, isPrivate }, ['sg-i']);

  it.each<[string, SecurityGroup, boolean]>([
    ['their group', letting(instances), true],
    ['any address', letting(everybody), true],
    ['any address, to the public address of this machine', letting(everybody), false],
  ])('is open to %s', (_, group, isPrivate) => {
    expect(judge(group, isPrivate).level).toBe('ok');
  });

  it.each<[string, SecurityGroup, boolean, RegExp]>([
    ['no rule allows the port', letting(instances, 22), true, /--group-id sg-m .*--port 8700 --source-group sg-i$/],
    [
      'only another group is admitted',
      letting({ UserIdGroupPairs: [{ GroupId: 'sg-x' }] }),
      true,
      /orchestrator setup/,
    ],
    [
      'they use public addresses, to which group rules do not apply',
      letting(instances),
      false,
      /private address.*--source-group sg-i\..*NAT gateway: .*--cidr <its address>\/32$/,
    ],
  ])('is closed where %s', (_, group, isPrivate, remedy) => {
    expect(judge(group, isPrivate)).toMatchObject({
      level: 'warning',
      text: expect.stringContaining('lets instances in on port 8700') as string,
      remedy: expect.stringMatching(remedy) as string,
    });
  });
});

describe('the settings of the bucket', () => {
  const good = {
    encryption: 'AES256',
    publicAccessBlocked: true,
    lifecycle: { abortsUploads: true, expiresRuns: true },
  };
  const about = { bucket: 'b', isFaithful: true, sse: null };

  it('all pass', () => {
    expect(levels(judgeBucket(good, about))).toEqual(['ok', 'ok', 'ok']);
  });

  it('fail without encryption on AWS, and warn elsewhere', () => {
    expect(levels(judgeBucket({ ...good, encryption: null }, about))).toEqual(['failed', 'ok', 'ok']);
    expect(levels(judgeBucket({ ...good, encryption: null }, { ...about, isFaithful: false }))[0]).toBe('warning');
  });

  it('warn about a customer-managed key, for which the instances need a permission', () => {
    const kmsKey = 'arn:aws:kms:eu-west-1:123456789012:key/k';
    const found = judgeBucket({ ...good, encryption: 'aws:kms', kmsKey }, about);
    expect(levels(found)).toEqual(['ok', 'warning', 'ok', 'ok']);
    expect(found[1]).toMatchObject({ remedy: expect.stringContaining('kms:GenerateDataKey') });
    expect(JSON.stringify(found[1])).toContain(kmsKey);
    const named = judgeBucket({ ...good, encryption: 'aws:kms', kmsKey }, { ...about, sse: kmsKey });
    expect(named[1]).toMatchObject({ level: 'warning', standing: true });
    expect(levels(judgeBucket({ ...good, encryption: 'aws:kms', kmsKey }, { ...about, sse: 'AES256' }))).toHaveLength(
      3,
    );
    for (const own of ['alias/aws/s3', 'arn:aws:kms:eu-west-1:123456789012:alias/aws/s3'])
      expect(levels(judgeBucket({ ...good, encryption: 'aws:kms', kmsKey: own }, about))).toEqual(['ok', 'ok', 'ok']);
  });

  it('do not count as encrypted while the encryption cannot be read', () => {
    const throttled = new AppError('aws-throttled', 'SlowDown');
    expect(judgeBucket({ ...good, encryption: throttled, lifecycle: throttled }, about)).toMatchObject([
      { level: 'failed', code: 'aws-throttled' },
      { level: 'ok' },
      { level: 'warning' },
    ]);
  });

  it('warn about public access and about objects that are never removed', () => {
    const lifecycle = { abortsUploads: true, expiresRuns: false };
    const found = judgeBucket({ ...good, publicAccessBlocked: false, lifecycle }, about);
    expect(levels(found)).toEqual(['ok', 'warning', 'warning']);
    expect(found[2]!.text).toContain('removes old runs:');
  });
});

describe('rights', () => {
  const answer = (verdict: Parameters<typeof judgeRights>[0][number]['verdict'], action = 'ec2:TerminateInstances') =>
    judgeRights([{ action, verdict, message: 'said' }]);

  it.each([
    ['allowed', 'ok'],
    ['denied', 'failed'],
    ['wrong', 'failed'],
    ['failed', 'failed'],
    ['unproved', 'warning'],
    ['missing', 'warning'],
  ] as const)('%s is %s', (verdict, level) => {
    expect(levels(answer(verdict))).toEqual([level]);
  });

  it('name aws.tags where a policy of the organisation denies a launch', () => {
    const message = 'UnauthorizedOperation: with an explicit deny in a service control policy';
    const [finding] = judgeRights([{ action: 'ec2:RunInstances', verdict: 'denied', message }]);
    expect(finding).toMatchObject({ level: 'failed', remedy: expect.stringContaining('aws.tags') as string });
  });

  it('pass when only the capacity is missing', () => {
    expect(levels(answer('pool', 'ec2:RunInstances'))).toEqual(['ok', 'warning']);
  });
});

describe('the callback address', () => {
  const tables = [table([], [MAIN])];

  it.each<[string, string[], string[]]>([
    ['public', ['203.0.113.7'], []],
    ['inside the VPC', ['10.0.3.4'], []],
    ['private elsewhere', ['192.168.1.5'], ['warning']],
    ['this machine alone', ['127.0.0.1'], ['failed']],
    ['this machine alone, by IPv6', ['::1'], ['failed']],
    ['link-local', ['fe80::1'], ['warning']],
  ])('%s', (_, addresses, expected) => {
    expect(levels(judgeAddress('http://main:8700', addresses, tables))).toEqual(expected);
  });

  it('is not reported as outside a VPC whose routes could not be read', () => {
    expect(judgeAddress('http://main:8700', ['192.168.1.5'], null)).toEqual([]);
    expect(levels(judgeAddress('http://main:8700', ['127.0.0.1'], null))).toEqual(['failed']);
  });
});

describe('versions', () => {
  it.each([
    ['22.18.9', '22.19', true],
    ['22.19.0', '22.19', false],
    ['24.1.0', '22.19', false],
    ['20.99.1', '22.19', true],
  ])('%s against %s', (version, than, expected) => {
    expect(isOlder(version, than)).toBe(expected);
  });
});
