import { features, readConfig } from '../../../support/features.ts';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import type { ConfigValues } from '../../../../orchestrator/core/config/schema.ts';
import { setupCommand } from '../../../../orchestrator/features/setup/command.ts';
import { type PolicyName, policyText } from '../../../../orchestrator/features/setup/policies.ts';
import { fleetLines, resourcesOf } from '../../../../orchestrator/features/setup/resources.ts';
import { terraformText } from '../../../../orchestrator/features/setup/terraform.ts';
import { type SetupFlags, setupValues } from '../../../../orchestrator/features/setup/values.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const FLAGS: SetupFlags = { region: 'ap-northeast-1', bucket: 'example-crawl', owner: 'main-1' };
const values = (flags: SetupFlags = {}, config: ConfigValues | null = null) =>
  setupValues({ ...FLAGS, ...flags }, config, {});

/** Two regions, and the main server's address. */
const SEVERAL = `aws: { regions: [{ region: eu-west-1, subnets: [subnet-0a] }, { region: us-east-1, subnets: [subnet-0b] }] }
server: { url: "http://203.0.113.7:8700" }`;

function configOf(sections: string): ConfigValues {
  using folder = tempDir();
  const site = 'site: { product_url: "https://shop.example/{id}", mapping: { fields: { title: h1 } }';
  writeFileSync(
    folder.file('fleet.yaml'),
    `${site}${sections}\nproducts: { query: "select id from p" }\ndatabase: { url: "sqlite:./x.db" }\n`,
  );
  return readConfig(folder.file('fleet.yaml'), {}).values;
}

const plain = (account: string) => ({ account, dollar: '$' });

describe('setupValues', () => {
  it('prefers flags over the configuration, and the configuration over the defaults', () => {
    const config = configOf(
      ', render: auto }\naws: { region: eu-west-1, bucket: other, owner: o, instance_profile: crawl-instance, subnets: [subnet-0a] }\nserver: { listen: "0.0.0.0:9000" }',
    );
    expect(setupValues({ bucket: 'mine' }, config, { AWS_REGION: 'us-west-2' })).toMatchObject({
      region: 'eu-west-1',
      bucket: 'mine',
      owner: 'o',
      instanceProfile: 'crawl-instance',
      subnets: ['subnet-0a'],
      callbackPort: 9000,
      keepDays: 30,
      image: true,
    });
    expect(values()).toMatchObject({ callbackPort: 8700, image: false, commands: false });
    expect(values({}, configOf(' }\naws: { commands: true }')).commands).toBe(true);
  });

  it.each([
    ['http://203.0.113.7:8700', { kind: 'outside', cidr: '203.0.113.7/32' }],
    ['http://10.0.0.5:8700', { kind: 'vpc' }],
    ['http://172.20.1.1:8700', { kind: 'vpc' }],
    ['http://main.internal:8700', { kind: 'vpc' }],
  ])('interprets a main server at %s as %o', (url, mainServer) => {
    expect(values({}, configOf(` }\nserver: { url: "${url}" }`)).mainServer).toEqual(mainServer);
  });

  it('allows launches in the regions of a run over several, and in no other', () => {
    const several = configOf(` }\n${SEVERAL}`);
    const found = setupValues({ bucket: 'b-1' }, several, {});
    const text = policyText('controller', found, plain('1'));
    expect(text).toContain('arn:aws:ec2:*:1:instance/*');
    expect(text).toMatch(/"aws:RequestedRegion": \[\s*"eu-west-1",\s*"us-east-1"\s*\]/);
    expect(policyText('controller', values(), plain('1'))).toContain('arn:aws:ec2:ap-northeast-1:1:instance/*');
    expect(policyText('controller', values(), plain('1'))).not.toContain('aws:RequestedRegion');
  });

  it('lists everything that is missing or invalid together', () => {
    const wrong = () =>
      setupValues({ bucket: 'No_Bucket', owner: 'a b', vpc: '$(x)', mainServer: '10.0.0.0/99' }, null, {});
    expect(wrong).toThrow(/--region .*missing.*--bucket must.*--owner must.*--vpc must.*--main-server must/s);
  });

  it.each(['"; rm -rf /', '${file("/etc/passwd")}', "it's", 'a`b`', 'x\ny'])(
    'refuses the name %j for any resource',
    (text) => {
      for (const flag of ['region', 'bucket', 'owner', 'name', 'vpc', 'mainServer', 'controllerUser'] as const)
        expect(() => values({ [flag]: text }), flag).toThrow();
      const config = configOf(
        ` }\naws: { instance_profile: ${JSON.stringify(text.replace('${', () => '$${'))}, subnets: [${JSON.stringify(text.replace('${', () => '$${'))}] }`,
      );
      expect(() => values({}, config)).toThrow(/instance_profile.*subnets/s);
      const types = configOf(` }\naws: { instance_types: [${JSON.stringify(text.replace('${', () => '$${'))}] }`);
      expect(() => values({}, types)).toThrow(/aws\.instance_types: .* is not an instance type/s);
    },
  );
});

describe('the files of deploy/terraform', () => {
  const FOLDER = new URL('../../../../deploy/terraform/', import.meta.url);
  const texts = globSync('*.tf', { cwd: FOLDER }).map((file) => readFileSync(new URL(file, FOLDER), 'utf8'));
  const namesIn = (pattern: RegExp): string[] =>
    [...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name!)))].toSorted();

  it('declare the variables that they name', () => {
    expect(namesIn(/\bvar\.(\w+)/g)).toEqual(namesIn(/^variable "(\w+)"/gm));
  });

  it('are filled in without a remainder, each file by some setup', () => {
    const written = [
      ...['eu-west-1', 'us-east-1'].map((region) => values({ region, mainServerOn: 'ec2', canary: true })),
      values(
        { controllerUser: 'alice', commands: true },
        configOf(' }\naws: { subnets: [subnet-0a], sse: "arn:aws:kms:a:1:key/k" }'),
      ),
      setupValues({ bucket: 'b-1' }, configOf(` }\n${SEVERAL}`), {}),
    ].map(terraformText);
    for (const text of written) expect(text).not.toMatch(/\bvar\.\w|# if |= null/);
    const headers = namesIn(/^(?:resource|data|output) "([\w" ]+)" \{/gm);
    expect(headers.filter((header) => !written.some((text) => text.includes(`"${header}" {`)))).toEqual([]);
  });
});

describe('the texts', () => {
  it.each(['controller', 'image', 'instance', 'instanceTrust'] as PolicyName[])(
    'have every name filled in: %s',
    (name) => {
      const text = policyText(name, values(), plain('111122223333'));
      // IAM replaces its own at each request.
      expect(text.replaceAll('${aws:userid}', '')).not.toContain('${');
      expect(() => JSON.parse(text) as unknown).not.toThrow();
    },
  );

  it('name every resource', () => {
    for (const flags of [{ image: true }, { mainServer: '203.0.113.7' }, { controllerUser: 'alice' }]) {
      const text = terraformText(values(flags));
      for (const { name, kind } of resourcesOf(values(flags))) expect(text, kind).toContain(name);
    }
  });

  it('tag everything they make with the tags of aws.tags, and nothing without', () => {
    const tagged = values({}, configOf(' }\naws: { tags: { CostCenter: "4711", "team name": "a b" } }'));
    expect(terraformText(tagged)).toContain(`  default_tags {
    tags = {
      "CostCenter" = "4711"
      "team name"  = "a b"
    }
  }
`);
    expect(terraformText(values())).not.toContain('default_tags');
  });

  it('encrypt with the KMS key of aws.sse, which both roles may then use', () => {
    const key = 'arn:aws:kms:ap-northeast-1:111122223333:key/k';
    const keyed = values({}, configOf(` }\naws: { sse: "${key}" }`));
    // The bucket's default, and one policy for each role.
    expect(terraformText(keyed).split(key)).toHaveLength(4);
    expect(terraformText(values({}, configOf(' }\naws: { sse: "aws:kms" }')))).not.toContain('kms:');
  });

  it('lend the KMS key of volumes to EC2, by the flag or by aws.volume', () => {
    const key = 'arn:aws:kms:ap-northeast-1:111122223333:key/v';
    for (const given of [
      values({ ebsKmsKey: key }),
      values({}, configOf(` }\naws: { volume: { kms_key: "${key}" } }`)),
    ]) {
      expect(terraformText(given)).toContain('crawlfleet-volumes');
      expect(terraformText(given).split(key)).toHaveLength(3);
    }
    expect(() => values({ ebsKmsKey: 'alias/x' })).toThrow('--ebs-kms-key must be the ARN of a KMS key');
  });

  it('use the partition of the region', () => {
    const inChina = values({ region: 'cn-north-1' });
    expect(policyText('instance', inChina, plain('1'))).toContain('arn:aws-cn:s3:::example-crawl/runs/*');
    expect(policyText('instanceTrust', inChina, plain('1'))).toContain('"ec2.amazonaws.com.cn"');
    expect(policyText('controller', inChina, plain('1'))).toContain('"iam:PassedToService": "ec2.amazonaws.com.cn"');
    const inEurope = values({ region: 'eusc-de-east-1' });
    expect(policyText('instance', inEurope, plain('1'))).toContain('arn:aws-eusc:s3:::example-crawl/runs/*');
    expect(policyText('instanceTrust', inEurope, plain('1'))).toContain('"ec2.amazonaws.com"');
    expect(terraformText(inEurope)).not.toContain('arn:aws:');
  });

  it('end with lines that are valid in fleet.yaml', () => {
    const config = configOf(` }\n${fleetLines(values({ mainServer: '203.0.113.7' }))}`);
    expect(config.aws).toMatchObject({
      bucket: 'example-crawl',
      instance_profile: 'crawlfleet-instance',
      owner: 'main-1',
    });
    expect(config.server).toMatchObject({ url: 'http://203.0.113.7:8700' });
    expect(parse(fleetLines(values()))).toHaveProperty('server.listen', '0.0.0.0:8700');
  });
});

describe('the security groups of aws.regions', () => {
  const several = configOf(` }\n${SEVERAL}`);
  const found = setupValues({ bucket: 'b-1' }, several, {});

  it('are made in each region, in the VPC of its subnets, and let in the address of the main server', () => {
    const terraform = terraformText(found);
    expect(terraform).toContain('provider "aws" {\n  alias  = "us_east_1"\n  region = "us-east-1"\n}\n');
    expect(terraform).toContain('data "aws_subnet" "first" {\n  id = "subnet-0a"');
    expect(terraform).toContain('"first_us_east_1" {\n  provider = aws.us_east_1\n\n  id = "subnet-0b"');
    const there = terraform.match(/(?:resource|data) "\w+" "\w+_us_east_1" \{\n[\s\S]*?\n\}\n/g)!;
    expect(there).toHaveLength(8);
    // Nothing of the first region is named there.
    for (const block of there) {
      expect(block).toContain('{\n  provider = aws.us_east_1\n');
      expect(block).not.toMatch(/\b(?:aws_security_group|aws_vpc|aws_subnet)\.\w+(?<!_us_east_1)\.\w+/);
    }
    expect(terraform.match(/cidr_ipv4 += "203\.0\.113\.7\/32"/g)).toHaveLength(2);
    const groups = resourcesOf(found).filter(({ kind }) => kind === 'security-group');
    expect(groups.map(({ why }) => why.startsWith('in us-east-1: '))).toEqual([false, false, true, true]);
  });

  it('let in that address in other regions only, where the main server is in the VPC', () => {
    const inVpc = setupValues({ bucket: 'b-1', mainServer: 'vpc' }, several, {});
    const terraform = terraformText(inVpc);
    expect(terraform.match(/cidr_ipv4 += "203\.0\.113\.7\/32"/g)).toHaveLength(1);
    expect(terraform).toContain('aws_security_group.main.id');
    expect(resourcesOf(inVpc).find(({ name }) => name.endsWith('-main'))!.why).toContain('you must open it');
    expect(fleetLines(inVpc)).toContain('url: "http://203.0.113.7:8700"');
    // The entries of aws.regions have them.
    expect(fleetLines(inVpc)).not.toContain('subnets');
  });

  it('are not made in a region that only has the bucket, unless the main server is there', () => {
    const apart = configOf(` }\n${SEVERAL.replace('aws: {', 'aws: { region: eu-central-1,')}`);
    const outside = setupValues({ bucket: 'b-1' }, apart, {});
    expect(terraformText(outside)).toContain('provider "aws" {\n  region = "eu-central-1"');
    expect(terraformText(outside)).not.toMatch(/"aws_vpc" "fleet" |"aws_security_group" "\w+(?<!_1)"/);
    expect(resourcesOf(outside).filter(({ kind }) => kind === 'security-group')).toHaveLength(4);
    const inVpc = setupValues({ bucket: 'b-1', mainServer: 'vpc', vpc: 'vpc-0a' }, apart, {});
    expect(terraformText(inVpc)).toContain('data "aws_vpc" "fleet" {\n  id = "vpc-0a"');
    expect(terraformText(inVpc)).toContain('"aws_security_group" "main"');
  });

  it('are the same for a list of one region as for aws.region', () => {
    const url = 'server: { url: "http://203.0.113.7:8700" }';
    const list = configOf(` }\naws: { regions: [{ region: eu-west-1 }] }\n${url}`);
    const short = configOf(` }\naws: { region: eu-west-1 }\n${url}`);
    expect(terraformText(setupValues({ bucket: 'b-1' }, list, {}))).toBe(
      terraformText(setupValues({ bucket: 'b-1' }, short, {})),
    );
  });

  it('are refused without the address of the main server, and with values that cannot be written', () => {
    const write = (flags: SetupFlags, text: string) => () =>
      setupValues({ bucket: 'b-1', ...flags }, configOf(` }\n${text}`), {});
    const named = SEVERAL.replace('203.0.113.7', 'main.example');
    expect(write({}, named)).toThrow('server.url must have the IPv4 address');
    expect(write({ mainServer: '203.0.113.7' }, named)).not.toThrow();
    expect(write({ vpc: 'vpc-0a' }, SEVERAL)).toThrow('--vpc applies to one region');
    expect(write({ mainServerOn: 'ec2', mainServer: 'vpc' }, SEVERAL)).toThrow('other regions cannot reach');
    expect(write({}, SEVERAL.replace('subnet-0b', '"$(x)"'))).toThrow('aws.regions: $(x) is not the id of a subnet');
    expect(write({}, SEVERAL.replace('us-east-1', '"$(x)"'))).toThrow('$(x) is not a region');
  });
});

describe('a main server that setup makes', () => {
  it('keeps its database in a secret, or in an SQLite file with backups', () => {
    const secret = terraformText(values({ mainServerOn: 'ec2' }));
    expect(secret).toContain('resource "aws_secretsmanager_secret" "database"');
    expect(secret).not.toContain('old-backups');
    const config = configOf(' }').database.url;
    expect(config).toMatch(/^sqlite:/);
    const file = values({ mainServerOn: 'ec2' }, configOf(' }'));
    expect(terraformText(file)).not.toContain('aws_secretsmanager_secret');
    expect(terraformText(file)).toContain('crawlfleet-back-up.timer');
    expect(resourcesOf(file).map((r) => r.kind)).toContain('instance');
    // Terraform would read these as its own.
    expect(terraformText(file)).not.toMatch(/user_data = <<-EOT(?:(?!\n {2}EOT)[\s\S])*[^$%][$%]\{/);
    expect(fleetLines(file)).not.toContain('server:');
  });

  it('is refused where there can be none', () => {
    for (const flags of [{ mainServer: '203.0.113.7' }, { controllerUser: 'alice' }])
      expect(() => values({ mainServerOn: 'ec2', ...flags })).toThrow(
        '--main-server-on makes a main server in the VPC',
      );
  });
});

describe('the lines for fleet.yaml', () => {
  it('contain placeholders for subnets when the groups are in another VPC, and are refused until these are filled in', () => {
    const asked = values({ vpc: 'vpc-0a1b2c', mainServer: '203.0.113.7' });
    const config = configOf(` }\n${fleetLines(asked)}`);
    expect(config.aws.subnets).toEqual(['SUBNET-OF-vpc-0a1b2c-IN-ONE-ZONE', 'SUBNET-OF-vpc-0a1b2c-IN-ANOTHER-ZONE']);
    expect(() => values({}, config)).toThrow(/SUBNET-OF-vpc-0a1b2c-IN-ONE-ZONE is not the id of a subnet/);
    expect(terraformText(asked)).toContain('subnets: [SUBNET-OF-vpc-0a1b2c-IN');
  });

  it('omit subnets for the default VPC, and keep the configured ones', () => {
    expect(fleetLines(values())).not.toContain('subnets');
    const config = configOf(' }\naws: { subnets: [subnet-0a, subnet-0b] }');
    expect(fleetLines(values({ vpc: 'vpc-0a1b2c' }, config))).toContain('subnets: [subnet-0a, subnet-0b]');
  });

  it('open the port that instances call, also behind a proxy in front of the listener', () => {
    const config = configOf(' }\nserver: { listen: "0.0.0.0:9000", url: "http://10.0.0.5" }');
    expect(values({}, config)).toMatchObject({ listenPort: 9000, callbackPort: 80 });
    const proxied = configOf(' }\nserver: { listen: "0.0.0.0:9000", url: "http://10.0.0.5:8080" }');
    expect(values({}, proxied)).toMatchObject({ listenPort: 9000, callbackPort: 8080 });
    expect(parse(fleetLines(values({}, proxied)))).toMatchObject({
      server: { listen: '0.0.0.0:9000', url: expect.stringMatching(/:8080$/) as string },
    });
    expect(terraformText(values({}, proxied))).toMatch(
      /ingress_rule" "main" \{[^}]* from_port +(= 8080)\n +to_port +\1\n/,
    );
  });
});

describe('setupCommand --out', () => {
  const run = (configPath: string, out: string): string => {
    const lines: string[] = [];
    const output = { json: false, line: (text = '') => void lines.push(text), document: () => {} };
    setupCommand({ configPath, out, flags: FLAGS, environment: {}, features }, output);
    return lines.join('\n');
  };

  it('prints a command that works from the current folder', () => {
    using folder = tempDir();
    expect(run(folder.file('fleet.yaml'), folder.file('new folder'))).toContain(
      `terraform -chdir='${folder.file('new folder')}' init && terraform -chdir='${folder.file('new folder')}' apply`,
    );
  });

  it('reports a folder that cannot be used', () => {
    using folder = tempDir();
    writeFileSync(folder.file('a-file'), '');
    for (const out of ['a-file', 'not/there', 'a-file/below'])
      expect(() => run(folder.file('fleet.yaml'), folder.file(out)), out).toThrow(/crawlfleet\.tf cannot be written/);
  });
});
