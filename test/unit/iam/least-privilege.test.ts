/**
 * The policies that setup prints, against the calls of a run and those of a thief of its keys: an evaluator that knows
 * nothing of how they are made.
 */
import { readConfig } from '../../support/features.ts';
import { writeFileSync } from 'node:fs';
import type { EC2, RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { describe, expect, it } from 'vitest';
import { type ManagedPolicy, managedPolicies } from '../../../orchestrator/features/setup/policies.ts';
import { setupValues } from '../../../orchestrator/features/setup/values.ts';
import { type LaunchRequest, TAG } from '../../../orchestrator/core/cloud/compute.ts';
import { runInstancesInput } from '../../../orchestrator/core/cloud/ec2-compute.ts';
import { BUILDER_TYPES } from '../../../orchestrator/core/plan/defaults.ts';
import {
  BROWSER_MEMORY_GB,
  chooseInstanceType,
  HTTP_MEMORY_GB,
  typesOfRun,
} from '../../../orchestrator/core/plan/instance-types.ts';
import { tempDir } from '../../support/temp-dir.ts';

const ACCOUNT = '111122223333';
const OWNER = 'main-1';

type Context = Record<string, string | string[]>;
interface Statement {
  Effect: string;
  Action: string | string[];
  Resource: string | string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}
interface Ask {
  action: string;
  resource: string;
  context: Context;
}

/**
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html; throws on an
 * operator it does not know.
 */
function isAllowed(statements: readonly Statement[], { action, resource, context }: Ask): boolean {
  return statements.some(
    (s) =>
      s.Effect === 'Allow' &&
      [s.Action].flat().includes(action) &&
      [s.Resource].flat().some((pattern) => isLike(pattern, resource)) &&
      Object.entries(s.Condition ?? {}).every(([operator, keys]) =>
        Object.entries(keys).every(([key, wanted]) => holds(operator, [wanted].flat(), context[key])),
      ),
  );
}

function holds(operator: string, wanted: readonly string[], found: string | string[] | undefined): boolean {
  const [, forAll, name, ifExists] = /^(ForAllValues:)?(\w+?)(IfExists)?$/.exec(operator)!;
  if (name === 'Null') return wanted.includes(String(found === undefined));
  if (found === undefined) return forAll !== undefined || ifExists !== undefined;
  const values = [found].flat();
  if (forAll === undefined) expect(values, operator).toHaveLength(1);
  return values.every((value) => wanted.some((pattern) => matches(name!, pattern, value)));
}

function matches(name: string, pattern: string, value: string): boolean {
  switch (name) {
    case 'StringEquals':
    case 'Bool':
      return pattern === value;
    case 'StringLike':
    case 'ArnLike':
    case 'ArnEquals':
      return isLike(pattern, value);
    default:
      throw new Error(`unknown operator ${name}`);
  }
}

const isLike = (pattern: string, value: string): boolean =>
  new RegExp(
    `^${pattern
      .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  ).test(value);

/**
 * What EC2 asks IAM for a launch:
 * https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
 */
function asksOf(input: RunInstancesCommandInput, region: string): Ask[] {
  const arn = (resource: string, account = ACCOUNT): string => `arn:aws:ec2:${region}:${account}:${resource}`;
  const tagsOf = (type: string): Context =>
    Object.fromEntries(
      (input.TagSpecifications ?? [])
        .filter((s) => s.ResourceType === type)
        .flatMap((s) => s.Tags ?? [])
        .map(({ Key, Value }) => [`aws:RequestTag/${Key}`, Value!]),
    );
  const profile = input.IamInstanceProfile?.Name;
  const card = input.NetworkInterfaces?.[0];
  const subnet = card?.SubnetId ?? input.SubnetId;
  const isPublic = card?.AssociatePublicIpAddress;
  const resources: [string, Context][] = [
    [
      arn('instance/*'),
      {
        ...tagsOf('instance'),
        'ec2:InstanceType': input.InstanceType!,
        'ec2:MetadataHttpTokens': input.MetadataOptions?.HttpTokens ?? 'optional',
        ...(profile ? { 'ec2:InstanceProfile': `arn:aws:iam::${ACCOUNT}:instance-profile/${profile}` } : {}),
      },
    ],
    [arn('volume/*'), tagsOf('volume')],
    [
      arn(`network-interface/${card?.NetworkInterfaceId ?? '*'}`),
      {
        // Whether EC2 counts them for an interface that exists is not documented: the worse case.
        ...tagsOf('network-interface'),
        ...(isPublic === undefined ? {} : { 'ec2:AssociatePublicIpAddress': String(isPublic) }),
        'ec2:Subnet': arn(`subnet/${subnet ?? 'subnet-of-the-default-vpc'}`),
      },
    ],
    // Without one in the request EC2 takes one of the default VPC, and asks about the interface only.
    ...(subnet === undefined ? [] : ([[arn(`subnet/${subnet}`), {}]] satisfies [string, Context][])),
    [arn('security-group/sg-1'), {}],
    [arn(`image/${input.ImageId}`, ''), {}],
  ];
  const asks = resources.map(([resource, context]) => ({ action: 'ec2:RunInstances', resource, context }));
  const tagging = (input.TagSpecifications ?? []).map((s) => ({
    action: 'ec2:CreateTags',
    resource: arn(`${s.ResourceType}/*`),
    context: { 'ec2:CreateAction': 'RunInstances' },
  }));
  const pass = {
    action: 'iam:PassRole',
    resource: `arn:aws:iam::${ACCOUNT}:role/${profile}`,
    context: { 'iam:PassedToService': 'ec2.amazonaws.com' },
  };
  return [...asks, ...tagging, ...(profile ? [pass] : [])].map((ask) => ({
    ...ask,
    context: { ...ask.context, 'aws:RequestedRegion': region },
  }));
}

interface Setup {
  types: readonly string[];
  places: { region: string; subnets: readonly string[] }[];
  printed: ManagedPolicy[];
  statements: Statement[];
}

function setupOf(aws: string, site = ''): Setup {
  using folder = tempDir();
  writeFileSync(
    folder.file('fleet.yaml'),
    `site: { product_url: "https://shop.example/{id}", mapping: { fields: { title: h1 } }${site} }
products: { query: "select id from p" }
database: { url: "sqlite:./x.db" }
aws: { bucket: example-crawl, owner: ${OWNER}, instance_profile: crawl, ${aws} }
server: { url: "http://203.0.113.7:8700" }
`,
  );
  const config = readConfig(folder.file('fleet.yaml'), {}).values;
  const { region, regions, subnets } = config.aws;
  const printed = managedPolicies(setupValues({}, config, {}), { account: ACCOUNT, dollar: '$' });
  return {
    types: config.aws.instance_types,
    places: regions ?? [{ region: region!, subnets }],
    printed,
    statements: printed.flatMap(({ text }) => (JSON.parse(text) as { Statement: Statement[] }).Statement),
  };
}

async function launch(change: Partial<LaunchRequest> = {}): Promise<RunInstancesCommandInput> {
  return runInstancesInput({} as EC2, {
    clientToken: 't',
    instanceType: 't4g.nano',
    imageId: 'ami-1',
    subnetId: 'subnet-0a',
    securityGroupIds: ['sg-1'],
    instanceProfile: 'crawl',
    userData: '',
    tags: { [TAG.owner]: OWNER, [TAG.run]: 'r', Name: 'n' },
    ...change,
  });
}

const SETUPS: [string, string, site?: string][] = [
  ['one region and its default VPC', 'region: eu-west-1'],
  ['one region with subnets', 'region: eu-west-1, subnets: [subnet-0a, subnet-0b]'],
  [
    'one region with types of its own, and a browser',
    'region: eu-west-1, subnets: [subnet-0a, subnet-0b], instance_types: [t3.small, c7g.large, m7i-flex.large]',
    ', render: auto',
  ],
  ['a list of one region', 'regions: [{ region: eu-west-1, subnets: [subnet-0a, subnet-0b] }]'],
  [
    'several regions, one of them with its default VPC, and a bucket elsewhere',
    'region: eu-central-1, regions: [{ region: eu-west-1, subnets: [subnet-0a, subnet-0b] }, { region: us-east-1 }, { region: us-west-2, subnets: [subnet-0c] }]',
  ],
];

describe.each(SETUPS)('the printed policy for %s', (_, aws, site) => {
  const { types, places, statements } = setupOf(aws, site);
  const may = (input: RunInstancesCommandInput, region: string): boolean =>
    asksOf(input, region).every((ask) => isAllowed(statements, ask));
  const first = { region: places[0]!.region, subnetId: places[0]!.subnets[0] ?? 'subnet-0any' };

  it('allows each type that a plan may choose or a launch fall back to, in each subnet of each region', async () => {
    for (const memoryGb of [HTTP_MEMORY_GB, BROWSER_MEMORY_GB]) {
      for (const { region, subnets } of places) {
        const planned = chooseInstanceType(types, region, memoryGb).name;
        for (const instanceType of new Set([...typesOfRun(planned, types), ...types]))
          for (const subnetId of subnets.length > 0 ? subnets : ['subnet-0any'])
            expect(may(await launch({ instanceType, subnetId }), region), `${instanceType} ${subnetId}`).toBe(true);
      }
    }
  });

  it('allows no other type, region, owner or role', async () => {
    const { region, subnetId } = first;
    expect(may(await launch({ instanceType: types[0]!, subnetId }), region)).toBe(true);
    expect(may(await launch({ instanceType: 'p5.48xlarge', subnetId }), region)).toBe(false);
    expect(may(await launch({ instanceType: types[0]!, subnetId }), 'ap-southeast-2')).toBe(false);
    expect(may(await launch({ instanceType: types[0]!, subnetId }), 'eu-central-1')).toBe(false);
    expect(may(await launch({ instanceType: types[0]!, subnetId, instanceProfile: 'admin' }), region)).toBe(false);
    expect(may(await launch({ instanceType: types[0]!, subnetId, tags: { [TAG.owner]: 'x' } }), region)).toBe(false);
  });

  it('allows no foreign subnet where the configuration names some, not even by leaving it out', async () => {
    for (const { region, subnets } of places) {
      const isBound = subnets.length > 0;
      const foreign = await launch({ instanceType: types[0]!, subnetId: 'subnet-0foreign' });
      expect(may(foreign, region)).toBe(!isBound);
      const [card] = foreign.NetworkInterfaces!;
      const { SubnetId: _left, ...withoutSubnet } = card!;
      expect(may({ ...foreign, NetworkInterfaces: [withoutSubnet] }, region)).toBe(!isBound);
      // A subnet of another region of the list.
      if (isBound && places.length > 1)
        expect(may(await launch({ instanceType: types[0]!, subnetId: subnets[0]! }), 'us-west-2')).toBe(
          region === 'us-west-2',
        );
    }
  });

  it('allows no interface that exists', async () => {
    const input = await launch({ instanceType: types[0]!, subnetId: first.subnetId });
    // With AssociatePublicIpAddress EC2 itself refuses the parameters: it is for a new interface only.
    for (const NetworkInterfaceId of ['eni-0foreign', 'eni-0a']) {
      const attached = { NetworkInterfaces: [{ DeviceIndex: 0, NetworkInterfaceId }] };
      expect(may({ ...input, ...attached, SubnetId: first.subnetId }, first.region)).toBe(false);
      expect(may({ ...input, ...attached }, first.region)).toBe(false);
    }
  });

  it('allows what else a run changes in each of the regions, for its owner, and in no other', () => {
    const OURS = { [`aws:ResourceTag/${TAG.owner}`]: OWNER };
    const NEW = { [`aws:RequestTag/${TAG.owner}`]: OWNER };
    const changes = (region: string, subnets: readonly string[]): Ask[] => {
      const elb = (kind: string): string => `arn:aws:elasticloadbalancing:${region}:${ACCOUNT}:${kind}`;
      const ask = (action: string, resource: string, context: Context): Ask => ({
        action,
        resource,
        context: { ...context, 'aws:RequestedRegion': region },
      });
      const balancer = elb('loadbalancer/app/cf-1/0');
      const group = elb('targetgroup/cf-1/0');
      return [
        ask('elasticloadbalancing:CreateLoadBalancer', balancer, {
          ...NEW,
          'elasticloadbalancing:Subnet': [...subnets],
          'elasticloadbalancing:Scheme': 'internal',
        }),
        ask('elasticloadbalancing:CreateTargetGroup', group, NEW),
        ask('elasticloadbalancing:CreateListener', balancer, NEW),
        ...['CreateListener', 'CreateLoadBalancer', 'CreateTargetGroup'].map((CreateAction) =>
          ask('elasticloadbalancing:AddTags', elb('listener/app/cf-1/0/1'), {
            'elasticloadbalancing:CreateAction': CreateAction,
          }),
        ),
        ...['RegisterTargets', 'DeregisterTargets', 'ModifyTargetGroupAttributes', 'DeleteTargetGroup'].map((action) =>
          ask(`elasticloadbalancing:${action}`, group, OURS),
        ),
        ask('elasticloadbalancing:DeleteListener', elb('listener/app/cf-1/0/1'), OURS),
        ask('elasticloadbalancing:DeleteLoadBalancer', balancer, OURS),
        ...['GetConsoleOutput', 'TerminateInstances'].map((action) =>
          ask(`ec2:${action}`, `arn:aws:ec2:${region}:${ACCOUNT}:instance/i-1`, OURS),
        ),
      ];
    };
    const refused = (asks: readonly Ask[]): string[] =>
      asks.filter((ask) => !isAllowed(statements, ask)).map(({ action }) => action);
    for (const { region, subnets } of places)
      expect(refused(changes(region, subnets.length > 0 ? subnets : ['subnet-0any', 'subnet-0other']))).toEqual([]);
    const elsewhere = changes('ap-southeast-2', ['subnet-0a']);
    expect(refused(elsewhere)).toHaveLength(elsewhere.length);
    const isAnyOpen = places.some(({ subnets }) => subnets.length === 0);
    expect(refused(changes(first.region, [first.subnetId, 'subnet-0foreign']))).toEqual(
      isAnyOpen ? [] : ['elasticloadbalancing:CreateLoadBalancer'],
    );
  });
});

describe('the policy of orchestrator image', () => {
  const { statements } = setupOf(
    'region: eu-west-1, subnets: [subnet-0a], instance_types: [t3.nano]',
    ', render: auto',
  );
  const tags = { [TAG.owner]: OWNER, 'crawlfleet:purpose': 'image' };
  const builder = async (instanceType: string): Promise<boolean> =>
    asksOf(await launch({ instanceType, tags, instanceProfile: null }), 'eu-west-1').every((ask) =>
      isAllowed(statements, ask),
    );

  it('allows the machines that it builds on, and no other type', async () => {
    for (const type of Object.values(BUILDER_TYPES)) expect(await builder(type)).toBe(true);
    expect(await builder('p5.48xlarge')).toBe(false);
  });
});

describe('a policy that is too long for AWS', () => {
  const regionName = (i: number): string =>
    `${['us', 'eu', 'ap', 'sa'][i % 4]}-${['east', 'west', 'north', 'south', 'central'][i % 5]}-1`;
  const many = (regions: number, subnets: number): string =>
    `instance_types: [${Array.from({ length: 20 }, (_, i) => `m7i-flex.${i + 1}xlarge`).join(', ')}], regions: [${Array.from(
      { length: regions },
      (_, i) =>
        `{ region: ${regionName(i)}, subnets: [${Array.from({ length: subnets }, (_, n) => `subnet-0123456789abc${10 + i}${10 + n}`).join(', ')}] }`,
    ).join(', ')}]`;

  it('goes on in further ones, which allow the same together', async () => {
    const { statements, places, types, printed } = setupOf(many(10, 4));
    for (const { region, subnets } of places)
      for (const subnetId of subnets)
        expect(
          asksOf(await launch({ instanceType: types.at(-1)!, subnetId }), region).filter(
            (ask) => !isAllowed(statements, ask),
          ),
        ).toEqual([]);
    expect(printed.map(({ key }) => key)).toEqual(['controller', 'controller-2', 'controller-3']);
    for (const { text } of printed) expect(text.replaceAll(/\s/g, '').length).toBeLessThanOrEqual(6_144);
  });

  it('is refused where one statement alone is too long', () => {
    expect(() => setupOf(many(20, 10))).toThrow(/Launch\w+ has \d,?\d+ characters.*at most 6144/);
  });
});
