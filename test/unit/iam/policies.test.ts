/**
 * The policies in deploy/policies against the calls that the program makes: no permission is missing, none is
 * superfluous.
 */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type PolicyName, policyText } from '../../../orchestrator/features/setup/policies.ts';
import { terraformText } from '../../../orchestrator/features/setup/terraform.ts';
import { setupValues } from '../../../orchestrator/features/setup/values.ts';
import { OWN_SESSION, ROLE_CASES } from '../../support/instance-role-cases.ts';

const ROOT = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');

interface Statement {
  Sid: string;
  Effect: string;
  Action: string | string[];
  Resource?: string | string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}

const statementsOf = (name: string): Statement[] =>
  (JSON.parse(read(`deploy/policies/${name}.json`)) as { Statement: Statement[] }).Statement;
const actionsOf = (name: string): string[] => statementsOf(name).flatMap((s) => [s.Action].flat());

/**
 * We make none of these calls: ELBv2 inspects the network of a new balancer with the permissions of the caller. All but
 * the last are in its list of API permissions. The last is required since the end of 2024 when security groups are
 * given: without it CreateLoadBalancer answers "AccessDenied … is not authorized to perform:
 * ec2:GetSecurityGroupsForVpc", though not yet in every account; the policy of AWS's own load balancer controller has
 * it since v2.10.
 */
const LOOKED_UP_BY_ELB = [
  'ec2:DescribeAccountAttributes',
  'ec2:DescribeAddresses',
  'ec2:DescribeInternetGateways',
  'ec2:DescribeSecurityGroups',
  'ec2:DescribeSubnets',
  'ec2:DescribeVpcs',
  'ec2:GetSecurityGroupsForVpc',
];

/**
 * The permissions for each SDK command, from the service authorization reference. A call that tags what it creates also
 * needs the permission to tag, and RunInstances with a profile the permission to pass its role.
 */
const RIGHTS: Record<string, string[]> = {
  // S3: HEAD of a bucket and a list of objects need the same permission.
  HeadBucket: ['s3:ListBucket'],
  ListObjectsV2: ['s3:ListBucket'],
  GetObject: ['s3:GetObject'],
  HeadObject: ['s3:GetObject'],
  PutObject: ['s3:PutObject'],
  DeleteObject: ['s3:DeleteObject'],
  GetBucketLocation: ['s3:GetBucketLocation'],
  GetBucketEncryption: ['s3:GetEncryptionConfiguration'],
  GetPublicAccessBlock: ['s3:GetBucketPublicAccessBlock'],
  GetBucketLifecycleConfiguration: ['s3:GetLifecycleConfiguration'],
  GetBucketVersioning: ['s3:GetBucketVersioning'],
  // EC2 has one, too: we read its tags in the descriptions of instances.
  DescribeTags: ['elasticloadbalancing:DescribeTags'],
  GetProducts: ['pricing:GetProducts'],
  GetServiceQuota: ['servicequotas:GetServiceQuota'],
  // The only call that needs no permission.
  GetCallerIdentity: [],
  RunInstances: ['ec2:RunInstances', 'ec2:CreateTags', 'iam:PassRole'],
  CreateImage: ['ec2:CreateImage', 'ec2:CreateTags'],
  CopyImage: ['ec2:CopyImage', 'ec2:CreateTags'],
  // The first balancer of an account creates ELB's service-linked role.
  CreateLoadBalancer: [
    'elasticloadbalancing:CreateLoadBalancer',
    'elasticloadbalancing:AddTags',
    'iam:CreateServiceLinkedRole',
    ...LOOKED_UP_BY_ELB,
  ],
  CreateTargetGroup: ['elasticloadbalancing:CreateTargetGroup', 'elasticloadbalancing:AddTags', 'ec2:DescribeVpcs'],
  CreateListener: ['elasticloadbalancing:CreateListener', 'elasticloadbalancing:AddTags'],
};

/**
 * Services whose permissions are named like the commands, and how to recognize a file that calls them: both have
 * DescribeTags.
 */
const SERVICES = [
  { client: 'client-ec2', name: 'ec2', used: /\blazyEc2\b|client-ec2/ },
  {
    client: 'client-elastic-load-balancing-v2',
    name: 'elasticloadbalancing',
    used: /\blazyElbv2\b|client-elastic-load-balancing-v2/,
  },
  { client: 'client-ssm', name: 'ssm', used: /\blazySsm\b|client-ssm/ },
];

/** Dry runs create their bucket on the sandbox; on AWS it already exists. */
const NEVER_ON_AWS = new Set(['CreateBucket']);
/** Only dry runs probe an endpoint, and only they use a stand-in. */
const NEVER_AT_AWS_FILES = /^orchestrator\/core\/cloud\/endpoint-profile/;

/** Files whose calls need permissions beyond the controller's: `orchestrator image`, `orchestrator exec`. */
const IMAGE_FILES = /^orchestrator\/(features\/image|core\/cloud\/image-)/;
const COMMAND_FILES = /^orchestrator\/features\/exec\//;

interface Call {
  command: string;
  file: string;
}

const CLIENTS = readdirSync(new URL('node_modules/@aws-sdk/', ROOT)).filter((name) => name.startsWith('client-'));
/** Files that hold a client: by its package, or by the functions that make them. */
const HOLDS_CLIENT = /@aws-sdk\/client-|\blazy(?:Ec2|Elbv2|Pricing|Quotas|S3|Ssm|Sts)\b/;
const CALL = /\bnew (?:\w+\.)*([A-Z]\w+)Command\(|\.(?:paginate)?(\w+)\(/g;

/** Every SDK call in the source: clients have a class, a method and, for a list, a paginator named after each call. */
function callsIn(pattern: string): Call[] {
  const files = globSync(pattern, { cwd: ROOT }).filter((file) => HOLDS_CLIENT.test(read(file)));
  return files.flatMap((file) =>
    [...read(file).matchAll(CALL)]
      .map((m) => capitalized((m[1] ?? m[2])!))
      .filter((command) => CLIENTS.some((client) => isCommandOf(client, command)))
      .map((command) => ({ command, file })),
  );
}

const capitalized = (name: string): string => name[0]!.toUpperCase() + name.slice(1);

function rightsOf({ command, file }: Call): string[] {
  if (NEVER_ON_AWS.has(command) || NEVER_AT_AWS_FILES.test(file)) return [];
  const known = RIGHTS[command];
  if (known) return known;
  const [service, ...others] = SERVICES.filter((s) => s.used.test(read(file)) && isCommandOf(s.client, command));
  if (!service || others.length > 0)
    throw new Error(`${file} calls ${command}: add its rights to this test and to the policies in deploy/policies`);
  return [`${service.name}:${command}`];
}

const isCommandOf = (client: string, command: string): boolean =>
  existsSync(new URL(`node_modules/@aws-sdk/${client}/dist-types/commands/${command}Command.d.ts`, ROOT));

const calls = callsIn('{orchestrator,shared,userdata}/**/*.ts');
const sorted = (names: Iterable<string>): string[] => [...new Set(names)].toSorted();

describe('the controller', () => {
  it('may do exactly what the program does, with the permissions of `orchestrator image` in a separate file', () => {
    const needed = calls.filter((c) => !IMAGE_FILES.test(c.file) && !COMMAND_FILES.test(c.file)).flatMap(rightsOf);
    expect(sorted(actionsOf('controller'))).toEqual(sorted(needed));
    const forImages = calls.filter((c) => IMAGE_FILES.test(c.file)).flatMap(rightsOf);
    const together = [...actionsOf('controller'), ...actionsOf('image')];
    expect(sorted(forImages).filter((right) => !together.includes(right))).toEqual([]);
    const onlyForImages = actionsOf('image').filter((right) => !actionsOf('controller').includes(right));
    expect(onlyForImages.filter((right) => !forImages.includes(right))).toEqual([]);
  });

  it('may run commands on its own instances only, by a separate file', () => {
    const needed = calls.filter((c) => COMMAND_FILES.test(c.file)).flatMap(rightsOf);
    expect(sorted(actionsOf('commands'))).toEqual(sorted(needed));
    const isSend = ({ Action }: Statement): boolean => Action === 'ssm:SendCommand';
    const sends = statementsOf('commands').filter(isSend);
    expect(sends.map(({ Resource, Condition }) => ({ Resource, Condition }))).toEqual([
      { Resource: 'arn:${partition}:ssm:${region}::document/AWS-RunShellScript', Condition: undefined },
      {
        Resource: 'arn:${partition}:ec2:${region}:${account}:instance/*',
        Condition: { StringEquals: { 'ssm:resourceTag/crawlfleet:owner': '${owner}' } },
      },
    ]);
    // IAM knows no resource for the others: they name commands, by ids that only the sender gets.
    const others = statementsOf('commands').filter((s) => !isSend(s));
    const changes = others.flatMap((s) => [s.Action].flat()).filter((a) => !/:(Describe|Get|List)/.test(a));
    expect(changes).toEqual(['ssm:CancelCommand']);
  });

  it.each(['controller', 'image'])(
    'has no wildcard among its actions, and none in the resources of write actions (%s)',
    (name) => {
      for (const { Sid, Action, Resource, Condition } of statementsOf(name)) {
        expect(
          [Action].flat().filter((a) => a.includes('*')),
          Sid,
        ).toEqual([]);
        const changes = [Action].flat().filter((a) => !/:(Describe|Get|List)/.test(a));
        if (changes.length > 0) expect([Resource].flat(), Sid).not.toContain('*');
        // The owner is in a tag, of the creating call or of the resource itself; other resources are limited by ARN.
        if (
          changes.some((a) => /Terminate|Stop|Start|Delete|Deregister|Register|Modify|CreateLoad|CreateTarget/.test(a))
        )
          expect(JSON.stringify(Condition), Sid).toContain('crawlfleet:owner');
      }
    },
  );

  it('lends one KMS key for volumes to EC2 alone, where setup is given one', () => {
    const [use, lend, ...others] = statementsOf('volumes');
    expect(others).toEqual([]);
    // https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption-requirements.html
    expect([use!.Action, lend!.Action].flat().toSorted()).toEqual(
      ['CreateGrant', 'Decrypt', 'DescribeKey', 'GenerateDataKeyWithoutPlaintext', 'ReEncryptFrom', 'ReEncryptTo'].map(
        (action) => `kms:${action}`,
      ),
    );
    expect([use!.Resource, lend!.Resource]).toEqual(['${volume_key}', '${volume_key}']);
    expect(lend!.Condition).toEqual({ Bool: { 'kms:GrantIsForAWSResource': 'true' } });
  });

  it('uses one KMS key for objects, where aws.sse names one, and instances only to write', () => {
    expect(statementsOf('sse').map((s) => [s.Action, s.Resource])).toEqual([
      [['kms:Decrypt', 'kms:GenerateDataKey'], '${object_key}'],
    ]);
    expect(statementsOf('instance-sse').map((s) => [s.Action, s.Resource])).toEqual([
      ['kms:GenerateDataKey', '${object_key}'],
    ]);
  });

  it('passes one role, and only to EC2', () => {
    const [pass, ...others] = statementsOf('controller').filter((s) => [s.Action].flat().includes('iam:PassRole'));
    expect(others).toEqual([]);
    expect(pass!.Resource).toMatch(/role\/\$\{instance_role\}$/);
    expect(pass!.Condition).toEqual({ StringEquals: { 'iam:PassedToService': '${ec2_principal}' } });
  });

  it.each([
    'controller',
    'image',
    'commands',
    'main-server',
    'sse',
    'volumes',
    'instance',
    'instance-commands',
    'instance-sse',
  ])('fits into a managed policy (%s)', (name) => {
    // 6,144 characters without white space; placeholders are replaced with their longest values, lists with one: setup
    // divides what is longer.
    const longest = read(`deploy/policies/${name}.json`).replaceAll(/\$\{\w+\}/g, 'x'.repeat(24));
    expect(longest.replaceAll(/\s/g, '').length).toBeLessThanOrEqual(6_144);
  });
});

interface RoleCall {
  action: string;
  resource: string;
  context: ReadonlyMap<string, string>;
}

/**
 * IAM's evaluation of an identity policy, for what the instances' has: one matching Allow and no matching Deny.
 * Variables are replaced at each request, and what they stand for has no wildcards.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
 */
function isAllowed(policy: { Statement: Statement[] }, call: RoleCall): boolean {
  const effects = policy.Statement.filter((s) => isMatch(s, call)).map((s) => s.Effect);
  return effects.includes('Allow') && !effects.includes('Deny');
}

function isMatch({ Action, Resource, Condition = {} }: Statement, { action, resource, context }: RoleCall): boolean {
  const literal = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const matches = (pattern: string, text: string): boolean => {
    const source = pattern.split(/(\$\{[^}]+\}|[*?])/).map((piece) => {
      if (piece === '*') return '.*';
      if (piece === '?') return '.';
      const variable = /^\$\{(.+)\}$/.exec(piece)?.[1];
      // A variable without a value matches nothing.
      return variable === undefined ? literal(piece) : literal(context.get(variable) ?? '\0');
    });
    return new RegExp(`^${source.join('')}$`, 's').test(text);
  };
  const conditions = Object.entries(Condition).flatMap(([operator, keys]) =>
    Object.entries(keys).map(([key, value]) => {
      if (operator !== 'Null') throw new Error(`this evaluator does not know the condition ${operator}`);
      return context.has(key) === (value === 'false');
    }),
  );
  return (
    [Action].flat().some((a) => matches(a, action)) &&
    [Resource ?? '*'].flat().some((r) => matches(r, resource)) &&
    conditions.every(Boolean)
  );
}

const SETUP = setupValues({ region: 'ap-northeast-1', bucket: 'shop-crawl', owner: 'main-1' }, null, {});
/** As setup prints it. */
const filledIn = (name: PolicyName): string => policyText(name, SETUP, { account: '111122223333', dollar: '$' });

describe('an instance', () => {
  it.each(ROLE_CASES.map((c) => [c.allowed ? 'may put' : 'may not put', c.what, c] as const))(
    '%s: %s',
    (_can, _what, { key, allowed, onlyIfAbsent = true, action = 'PutObject' }) => {
      const context = new Map([
        ['aws:userid', OWN_SESSION],
        ...(onlyIfAbsent ? [['s3:if-none-match', '*'] as const] : []),
      ]);
      const call = { action: `s3:${action}`, resource: `arn:aws:s3:::shop-crawl/${key}`, context };
      expect(isAllowed(JSON.parse(filledIn('instance')) as { Statement: Statement[] }, call)).toBe(allowed);
    },
  );

  it("leaves IAM's own variable to IAM in Terraform", () => {
    const text = terraformText(SETUP);
    expect(text).toContain('/runs/*/*/*/$${aws:userid}/*');
    expect(text.replaceAll('$${aws:userid}', '')).not.toContain('aws:userid');
  });

  it('may, where it takes commands, only speak to Systems Manager, and read no parameter of the account', () => {
    const services = actionsOf('instance-commands').map((action) => action.split(':')[0]);
    expect(sorted(services as string[])).toEqual(['ec2messages', 'ssm', 'ssmmessages']);
    expect(actionsOf('instance-commands').filter((a) => /Get(?!Messages|Endpoint)|\*/.test(a))).toEqual([]);
  });

  it('makes no call without a permission', () => {
    // Its store can also read and list, for the main server; an instance may only call the put.
    const uses = globSync('crawl-api/**/*.ts', { cwd: ROOT }).flatMap((file) =>
      [...read(file).matchAll(/\b(?:objects|store|bucket|#objects|#store)\.(get|list|presignGet|putIfAbsent)\(/g)].map(
        (m) => m[1]!,
      ),
    );
    expect(sorted(uses)).toEqual(['putIfAbsent']);
    expect(callsIn('crawl-api/**/*.ts')).toEqual([]);
  });
});
