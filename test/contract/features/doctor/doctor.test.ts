/** orchestrator doctor, and run before it launches, against a sandbox that simulates the faults of AWS. */
import { features, readConfig } from '../../../support/features.ts';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../../../orchestrator/core/db/connect.ts';
import { preflight } from '../../../../orchestrator/core/prepare/preflight.ts';
import { chooseTarget } from '../../../../orchestrator/core/config/target.ts';
import { checkEc2Rights } from '../../../../orchestrator/core/cloud/right-checks.ts';
import { ALL_CHECKS } from '../../../../orchestrator/core/checks/all-checks.ts';
import { checkBeforeLaunch } from '../../../../orchestrator/core/run/before-launch.ts';
import { AppError } from '../../../../shared/domain/errors.ts';
import { EXIT } from '../../../../shared/domain/exit-codes.ts';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../../../orchestrator/cli/commands/run.ts';
import { startScriptedEndpoint } from '../../core/cloud/scripted-endpoint.ts';
import { type DoctorStage, KEYS, openDoctorStage, type Overrides } from '../../cli/doctor-stage.ts';

const MAIN = fileURLToPath(new URL('../../../../orchestrator/main.ts', import.meta.url));

/** EC2's answer to a key that belongs to no account. */
const AUTH_FAILURE = `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>AuthFailure</Code><Message>AWS was not able to validate the provided access credentials</Message></Error></Errors><RequestID>x</RequestID></Response>`;

/** A name with an empty label is not sent to a name server, which might take longer than the check. */
const NO_NAME = 'http://no..where:8700';

let stage: DoctorStage;

beforeAll(async () => {
  for (const [name, value] of Object.entries(KEYS)) vi.stubEnv(name, value);
  stage = await openDoctorStage();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await stage.close();
});
afterEach(() => stage.calm());

const denied = (action: string, count = 1, code = 'AccessDenied') => ({
  what: 'error',
  action,
  code,
  status: 403,
  count,
});

describe('orchestrator doctor', () => {
  it('finds a healthy configuration ready, makes every check, and launches nothing', async () => {
    // Node for this machine's own architecture is here; for another one npm's registry would be queried.
    const type = process.arch === 'arm64' ? 't4g.nano' : 't3.nano';
    const found = await stage.doctor({ aws: `instance_types: [${type}]` }, { withBundle: true });
    expect(found.failed).toEqual([]);
    expect(found).toMatchObject({ ready: true, exitCode: EXIT.complete });
    const expected = ALL_CHECKS.filter((check) => check.only !== 'dry').map((check) => check.id);
    expect([...new Set(found.checks.map((c) => c.id))]).toEqual(['configuration', ...expected]);
    expect(found.of('credentials')[0]!.text).toContain('account 000000000000');
    expect(found.of('callback')).toEqual([expect.objectContaining({ level: 'ok' })]);
    expect(found.of('ec2-rights')[0]!.text).toContain('ec2:RunInstances');
    expect(found.of('ec2-rights')[0]!.text).toContain('ec2:GetSecurityGroupsForVpc');
    expect(found.of('elb-rights')[0]!.text).toContain('elasticloadbalancing:DescribeTargetHealth');
    expect(await stage.instances()).toEqual([]);
  });

  it('needs nothing of AWS for a dry run', async () => {
    const found = await stage.doctor(
      { aws: 'endpoint: null, bucket: null, instance_profile: null', server: '' },
      { dryRun: true },
    );
    expect(found).toMatchObject({ ready: true, failed: [] });
    expect(found.checks.map((c) => c.id)).not.toContain('credentials');
  });

  type What = { rules?: unknown[]; conditions?: unknown; config?: Overrides };
  it.each<[check: string, What, text: RegExp, remedy: RegExp]>([
    [
      'credentials',
      { rules: [denied('GetCallerIdentity', 1, 'InvalidClientTokenId')] },
      /InvalidClientTokenId/,
      /credentials/,
    ],
    ['bucket', { rules: [denied('HeadBucket')] }, /belongs to another account than 000000000000/, /setup/],
    ['bucket', { rules: [denied('HeadBucket', 2)] }, /another account, or these credentials/, /s3:ListBucket/],
    [
      'bucket',
      { config: { aws: 'bucket: nowhere' } },
      /there is no bucket nowhere/,
      /create-bucket --bucket nowhere .*LocationConstraint=ap-northeast-1/,
    ],
    ['bucket', { config: { aws: 'region: eu-west-1' } }, /is in ap-northeast-1, not in eu-west-1/, /aws.region/],
    [
      'bucket-settings',
      {
        rules: [
          {
            what: 'error',
            action: 'GetBucketEncryption',
            code: 'ServerSideEncryptionConfigurationNotFoundError',
            status: 404,
            count: 1,
          },
        ],
      },
      /does not encrypt/,
      /put-bucket-encryption --bucket results/,
    ],
    ['bucket-rights', { rules: [denied('PutObject')] }, /PutObject/, /s3:PutObject/],
    [
      'subnets',
      { conditions: { defaultRoute: 'nat-gateway' } },
      /behind a NAT all instances have one address.*nat-/,
      /public subnets/,
    ],
    ['subnets', { conditions: { defaultRoute: 'none' } }, /no way to the internet/, /public subnets/],
    ['subnets', { config: { aws: 'subnets: [subnet-0c0a0f1ee7000000a]' } }, /needs two zones/, /another zone/],
    [
      'ec2-rights',
      { rules: [denied('RunInstances', 1, 'UnauthorizedOperation')] },
      /ec2:RunInstances is refused/,
      /iam:PassRole/,
    ],
    [
      'ec2-rights',
      { rules: [denied('GetSecurityGroupsForVpc', 1, 'UnauthorizedOperation')] },
      /ec2:GetSecurityGroupsForVpc is refused/,
      /controller.json/,
    ],
    [
      'elb-rights',
      { rules: [denied('DescribeTargetGroups')] },
      /elasticloadbalancing:DescribeTargetGroups is refused/,
      /controller.json/,
    ],
    ...(
      [
        ['ec2-rights', 'ec2', 'DescribeAccountAttributes'],
        ['ec2-rights', 'ec2', 'DescribeAddresses'],
        ['ec2-rights', 'ec2', 'DescribeInternetGateways'],
        ['ec2-rights', 'ec2', 'DescribeVpcs'],
        ['elb-rights', 'elasticloadbalancing', 'DescribeListeners'],
        ['elb-rights', 'elasticloadbalancing', 'DescribeTargetHealth'],
      ] as const
    ).map(([check, service, action]): [string, What, RegExp, RegExp] => [
      check,
      { rules: [denied(action, 1, service === 'ec2' ? 'UnauthorizedOperation' : 'AccessDenied')] },
      new RegExp(`${service}:${action} is refused`),
      /controller.json/,
    ]),
    ['results', { config: { results: 'table: products' } }, /does not fit/, /ALTER TABLE|name a table/],
    ['callback', { config: { server: `url: "${NO_NAME}", listen: "127.0.0.1:0"` } }, /does not resolve/, /server.url/],
    ['products', { config: { query: 'select nothing from nowhere' } }, /products.query/, /./],
    ['settings', { config: { aws: 'bucket: null' } }, /needs aws.bucket/, /--dry-run/],
  ])(
    'fails the check %s for %j, and explains what to do',
    async (check, { rules = [], conditions, config }, text, remedy) => {
      await stage.fault(...rules);
      if (conditions) await stage.be(conditions);
      const found = await stage.doctor(config);
      expect(found.failed).toEqual([check]);
      const [failure] = found.of(check).filter((line) => line.level === 'failed');
      expect(failure!.text).toMatch(text);
      expect(failure!.remedy).toMatch(remedy);
      expect(found).toMatchObject({ ready: false, exitCode: EXIT.config });
    },
  );

  it.each<[check: string, rule: unknown, text: RegExp]>([
    ['subnets', denied('DescribeRouteTables', 1, 'UnauthorizedOperation'), /route tables could not be read/],
    ['bucket-settings', denied('GetBucketEncryption'), /encryption could not be read/],
    ['quota', denied('GetServiceQuota', 1, 'AccessDeniedException'), /not allowed/],
    ['credentials', { what: 'error', action: 'GetCallerIdentity', code: 'InvalidAction', count: 1 }, /no such call/],
    ['subnets', { what: 'error', action: 'DescribeRouteTables', code: 'InvalidAction', count: 1 }, /no such call/],
  ])('only warns, by the check %s, of %j', async (check, rule, text) => {
    await stage.fault(rule);
    const found = await stage.doctor();
    expect(found).toMatchObject({ ready: true, failed: [] });
    expect(
      found
        .of(check)
        .filter((line) => line.level === 'warning')
        .map((line) => line.text)
        .join(),
    ).toMatch(text);
  });

  it('refuses a deadline that the quota does not allow, and names the quota to request from AWS', async () => {
    await stage.be({ vcpuQuota: 1 });
    const found = await stage.doctor();
    expect(found.failed).toEqual(['plan']);
    expect(found.of('plan')[0]!.remedy).toMatch(
      /aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-1216C47A --desired-value \d+ --region ap-northeast-1/,
    );
    expect(found.exitCode).toBe(EXIT.capacity);
  });

  it('names the log-in for expired credentials, and reads the time from the refusal', async () => {
    await stage.fault(denied('GetCallerIdentity', 1, 'ExpiredToken'), denied('DescribeSubnets', 9, 'AuthFailure'));
    const found = await stage.doctor();
    expect(found.of('credentials')[0]!.remedy).toMatch(/aws sso login.*aws login/);
    expect(found.of('clock')).toEqual([expect.objectContaining({ level: 'ok' })]);
  });

  it.each<[string, Overrides, unknown[]]>([
    ['unknown', { aws: 'subnets: [subnet-0deadbeef]' }, []],
    ['denied', {}, [denied('DescribeSubnets', 9, 'UnauthorizedOperation')]],
  ])('does not blame the clock for subnets that are %s, and reports that once', async (_, config, rules) => {
    await stage.fault(...rules);
    const found = await stage.doctor(config);
    expect(found.failed).toEqual(['subnets']);
    expect(found.of('clock')).toEqual([expect.objectContaining({ level: 'ok' })]);
  });

  it.each(['RunInstances', 'DescribeSubnets'])('retries where AWS throttles %s for a moment', async (action) => {
    await stage.fault({ what: 'error', action, code: 'RequestLimitExceeded', status: 503, count: 3 });
    expect(await stage.doctor()).toMatchObject({ ready: true, failed: [] });
  });

  it('asks for each type and each subnet of a run, and says which the policy refuses', async () => {
    await stage.fault({ what: 'error', action: 'RunInstances', code: 'UnauthorizedOperation', status: 403, count: 1 });
    const found = await stage.doctor({ aws: 'instance_types: [t4g.nano, t4g.micro, t4g.small, t3.nano]' });
    expect(found.failed).toEqual(['ec2-rights']);
    const refused = found.of('ec2-rights').find(({ level }) => level === 'failed')!;
    expect(refused.text).toMatch(/^ec2:RunInstances is refused for t4g\.(nano|micro|small) in subnet-\w+: /);
    expect(refused.remedy).toContain('run orchestrator setup again');
  });

  it('advises a later retry where AWS keeps failing, and blames no setting', async () => {
    await stage.fault({ what: 'error', action: 'GetBucketLocation', code: 'InternalError', status: 500, count: 9 });
    const found = await stage.doctor();
    expect(found).toMatchObject({ failed: ['bucket'], exitCode: EXIT.capacity });
    expect(found.of('bucket')[0]!.text).toContain('could not be checked');
    expect(found.of('bucket')[0]!.remedy).toContain('a few minutes');
  });

  it('checks everything that does not need the bucket when none is set', async () => {
    await stage.be({ defaultRoute: 'nat-gateway' });
    const found = await stage.doctor({ aws: 'bucket: null' });
    expect(found.failed).toEqual(['settings', 'subnets']);
    expect(found.of('bucket')[0]!.text).toBe('not checked: aws.bucket is not set');
  });

  it('does not take a vanished instance for a wrong setting', async () => {
    const { region, endpoint } = stage.sandbox;
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const answers = await checkEc2Rights({ region, endpoint, credentials }, [], 'i-0123456789abcdef0', null);
    expect(answers.filter((a) => a.verdict === 'wrong')).toEqual([]);
    expect(answers.find((a) => a.action === 'ec2:TerminateInstances')!.verdict).toBe('unproved');
  });

  it('refuses a configured load balancer that does not exist', async () => {
    const found = await stage.doctor({ aws: 'load_balancer: nobody' });
    expect(found.failed).toEqual(['load-balancer']);
    expect(found.of('load-balancer')[0]!.text).toContain('does not know nobody');
  });

  it.each([
    // Debian for x86_64, while the cheapest type is arm64.
    ['of the other architecture', 'ami-0c5a9500e086e5aea', /is for x86_64, the instance type is arm64/],
    ['that is not there', `ami-0${'0'.repeat(16)}`, /does not exist|does not know/],
  ])('refuses an image %s', async (_, image, text) => {
    const found = await stage.doctor({ aws: `image: ${image}` });
    expect(found.failed).toEqual(['image']);
    expect(found.of('image')[0]!.text).toMatch(text);
  });

  it('reports a port that another program uses', async () => {
    const other = createServer().listen(stage.port, '127.0.0.1');
    await once(other, 'listening');
    const found = await stage.doctor();
    other.close();
    expect(found.failed).toEqual(['callback']);
    expect(found.of('callback')[0]!.text).toContain('used by another program');
  });

  it('prints a document even when the configuration itself is invalid', async () => {
    const found = await stage.doctor({ run: 'max_cots: 3' });
    expect(found).toMatchObject({ ready: false, exitCode: EXIT.config, failed: ['configuration'] });
    expect(found.checks[0]!.text).toContain('max_cots');
  });
});

describe('orchestrator run', () => {
  const refusal = async (changes?: Overrides): Promise<AppError> => {
    const error = await stage.run(changes).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(AppError);
    return error as AppError;
  };

  it('is refused with all reasons at once, before anything is launched', async () => {
    await stage.be({ defaultRoute: 'nat-gateway', vcpuQuota: 1 });
    await stage.fault(denied('RunInstances', 1, 'UnauthorizedOperation'), denied('HeadBucket'));
    const error = await refusal();
    expect(error.exitCode).toBe(EXIT.config);
    for (const part of [
      'behind a NAT',
      'another account than',
      'ec2:RunInstances is refused',
      'L-1216C47A',
      'request-service-quota-increase',
    ])
      expect(error.message).toContain(part);
    expect(await stage.instances()).toEqual([]);
  });

  /** Digits that do not compress. */
  const digits = Array.from({ length: 400 }, (_, i) => createHash('sha256').update(String(i)).digest('hex')).join('');

  it.each<[string, Overrides, RegExp[]]>([
    ['a result table that does not fit', { results: 'table: products' }, [/does not fit/]],
    [
      'user data that is too long',
      { server: `url: "${NO_NAME}/${digits}", listen: "127.0.0.1:0"` },
      [/user data is \d+ bytes long/],
    ],
    ['addresses that are renewed too fast', { aws: 'recycle_every: 5s' }, [/aws.recycle_every/]],
    ['a bucket that is not set', { aws: 'bucket: null' }, [/needs aws.bucket/]],
    ['a query that fails', { query: 'select nothing from nowhere' }, [/products.query/]],
    [
      'a callback name that does not resolve',
      { server: `url: "${NO_NAME}", listen: "127.0.0.1:0"` },
      [/no\.\.where does not resolve/],
    ],
  ])('reports %s together with the objections of AWS and the quota', async (name, changes, texts) => {
    await stage.be({ defaultRoute: 'nat-gateway', vcpuQuota: 1 });
    const error = await refusal(changes);
    expect(error.exitCode).toBe(EXIT.config);
    const hasPlan = !/renewed|query/.test(name);
    for (const text of [...texts, /behind a NAT/, ...(hasPlan ? [/L-1216C47A/] : [])])
      expect(error.message).toMatch(text);
    expect(await stage.instances()).toEqual([]);
  });

  it('reports an unreachable database together with the objections of AWS', async () => {
    await stage.be({ defaultRoute: 'nat-gateway' });
    const error = await refusal({ database: 'mysql://u:p@nowhere.invalid/shop' });
    expect(error).toMatchObject({ code: 'database-unreachable', exitCode: EXIT.config });
    expect(error.message).toContain('behind a NAT');
    expect(error.message.match(/^ {2}- /gm)).toHaveLength(2);
  });

  it('is refused with "later" when AWS cannot be reached', async () => {
    await stage.fault({ what: 'error', action: 'RunInstances', code: 'RequestLimitExceeded', status: 503, count: 100 });
    const error = await refusal();
    expect(error).toMatchObject({ code: 'aws-unanswered', exitCode: EXIT.capacity });
    expect(error.message).toMatch(/^EC2 rights: could not be checked: .*RequestLimitExceeded/);
    expect(await stage.instances()).toEqual([]);
  });

  it('warns of a plan that lacks the earlier runs, because their tables are of an earlier version', async () => {
    stage.configure();
    const config = readConfig(stage.file, { ...KEYS }, []);
    const target = chooseTarget(config, false, { ...KEYS });
    const warningsOf = async (change?: (database: Database) => Promise<unknown>): Promise<string> => {
      const options = { migrate: change === undefined, environment: {}, output: { line: () => undefined } };
      await using checked = await preflight(config, target, options);
      await change?.(checked.database);
      return (await checked.plan(await checked.readProducts())).plan.warnings.join('\n');
    };
    expect(await warningsOf()).not.toContain('earlier version');
    const age = ({ knex }: Database) => knex('crawlfleet_migrations').where('version', '>', 1).delete();
    expect(await warningsOf(age)).toMatch(/tables are of an earlier version, 1: .*orchestrator status brings them/);
  });

  it('prints the warnings of the checks, without those that apply to every run', async () => {
    stage.configure();
    const config = readConfig(stage.file, { ...KEYS }, []);
    const target = chooseTarget(config, false, { ...KEYS });
    const checked = await preflight(config, target, {
      migrate: true,
      environment: {},
      output: { line: () => undefined },
    });
    try {
      const products = await checked.readProducts();
      const { plan } = await checked.plan(products);
      await stage.fault(denied('GetBucketEncryption'));
      const place = { config, target, environment: { ...KEYS }, database: checked.database, plan, products };
      const lines = (await checkBeforeLaunch(place)).join('\n');
      expect(lines).toMatch(/^encryption and access of the bucket: its encryption could not be read/m);
      expect(lines).not.toMatch(/load balancer rights|TerminateInstances/);
    } finally {
      await checked.database.close();
    }
  });
});

describe('a dry run at an endpoint on this machine that refuses its keys', () => {
  it('is refused by doctor and run, because it may be a real account', async () => {
    const tunnel = await startScriptedEndpoint(() => ({ status: 401, body: AUTH_FAILURE }));
    try {
      const changes = { aws: `endpoint: "${tunnel.endpoint}"`, server: '' };
      const found = await stage.doctor(changes, { dryRun: true });
      expect(found.failed).toEqual(['endpoint']);
      expect(found.of('endpoint')[0]!.text).toContain('may lead to a real account');
      expect(found.exitCode).toBe(EXIT.config);
      const output = { json: true, line: () => undefined, document: () => undefined };
      const run = runCommand(
        { configPath: stage.file, flags: [], dryRun: true, yes: true, environment: {}, features },
        output,
      );
      await expect(run).rejects.toMatchObject({ code: 'endpoint-refused' });
    } finally {
      await tunnel.stop();
    }
  });
});

describe('orchestrator doctor as a process', () => {
  const doctor = (...flags: string[]) =>
    new Promise<{ code: number; stdout: string }>((resolve) => {
      const environment = { ...process.env, AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };
      execFile(
        process.execPath,
        [MAIN, 'doctor', '--config', stage.file, ...flags],
        { env: environment, timeout: 60_000 },
        (error, stdout) => resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout }),
      );
    });

  it(
    'prints one document and exits on its own, with 0 when a run could start and else with the code of the cause',
    { timeout: 150_000 },
    async () => {
      stage.configure();
      const good = await doctor('--json');
      expect(JSON.parse(good.stdout)).toMatchObject({ ready: true, exitCode: 0 });
      expect(good.code).toBe(EXIT.complete);
      await stage.be({ vcpuQuota: 1 });
      const bad = await doctor();
      await stage.calm();
      expect(bad.code).toBe(EXIT.capacity);
      expect(bad.stdout).toMatch(
        /^failed {3}plan against deadline, quota and cost: .*\n {9}-> What would make it feasible/m,
      );
      expect(bad.stdout).toContain('1 failed: a run would be refused.');
    },
  );
});
