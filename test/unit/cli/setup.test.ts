import { writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../orchestrator/cli/config/load-config.ts';
import type { ConfigValues } from '../../../orchestrator/cli/config/schema.ts';
import { setupCommand } from '../../../orchestrator/cli/commands/setup.ts';
import { awsCliText } from '../../../orchestrator/cli/setup/aws-cli.ts';
import type { PolicyName } from '../../../orchestrator/cli/setup/policies.ts';
import { policyText } from '../../../orchestrator/cli/setup/policies.ts';
import { fleetLines, resourcesOf } from '../../../orchestrator/cli/setup/resources.ts';
import { terraformText } from '../../../orchestrator/cli/setup/terraform.ts';
import type { SetupFlags } from '../../../orchestrator/cli/setup/values.ts';
import { setupValues } from '../../../orchestrator/cli/setup/values.ts';
import { tempDir } from '../../support/temp-dir.ts';

const FLAGS: SetupFlags = { region: 'ap-northeast-1', bucket: 'example-crawl', owner: 'main-1' };
const values = (flags: SetupFlags = {}, config: ConfigValues | null = null) =>
  setupValues({ ...FLAGS, ...flags }, config, {});

function configOf(sections: string): ConfigValues {
  using folder = tempDir();
  const site = 'site: { product_url: "https://shop.example/{id}", mapping: { fields: { title: h1 } }';
  writeFileSync(
    folder.file('fleet.yaml'),
    `${site}${sections}\nproducts: { query: "select id from p" }\ndatabase: { url: "sqlite:./x.db" }\n`,
  );
  return loadConfig(folder.file('fleet.yaml'), {}).values;
}

describe('setupValues', () => {
  it('takes flags before the configuration, and that before the defaults', () => {
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
    expect(values()).toMatchObject({ instanceProfile: 'crawlfleet-instance', callbackPort: 8700, image: false });
  });

  it.each([
    ['http://203.0.113.7:8700', { kind: 'outside', cidr: '203.0.113.7/32' }],
    ['http://10.0.0.5:8700', { kind: 'vpc' }],
    ['http://172.20.1.1:8700', { kind: 'vpc' }],
    ['http://main.internal:8700', { kind: 'vpc' }],
  ])('takes a main server at %s for %o', (url, mainServer) => {
    expect(values({}, configOf(` }\nserver: { url: "${url}" }`)).mainServer).toEqual(mainServer);
  });

  it('lists everything that is missing or wrong at once', () => {
    const wrong = () =>
      setupValues({ bucket: 'No_Bucket', owner: 'a b', vpc: '$(x)', mainServer: '10.0.0.0/99' }, null, {});
    expect(wrong).toThrow(/--region .*missing.*--bucket must.*--owner must.*--vpc must.*--main-server must/s);
  });

  it.each(['"; rm -rf /', '${file("/etc/passwd")}', "it's", 'a`b`', 'x\ny'])(
    'refuses the name %j wherever it is put',
    (text) => {
      for (const flag of ['region', 'bucket', 'owner', 'name', 'vpc', 'mainServer', 'controllerUser'] as const)
        expect(() => values({ [flag]: text }), flag).toThrow();
      const config = configOf(
        ` }\naws: { instance_profile: ${JSON.stringify(text)}, subnets: [${JSON.stringify(text)}] }`,
      );
      expect(() => values({}, config)).toThrow(/instance_profile.*subnets/s);
    },
  );
});

describe('the texts', () => {
  it.each(['controller', 'image', 'instance', 'instanceTrust'] as PolicyName[])('fill every name into %s', (name) => {
    const text = policyText(name, values(), '111122223333');
    expect(text).not.toContain('${');
    expect(() => JSON.parse(text) as unknown).not.toThrow();
  });

  it.each([['terraform', terraformText] as const, ['aws-cli', awsCliText] as const])(
    'name every resource in %s',
    (_, write) => {
      for (const flags of [{ image: true }, { mainServer: '203.0.113.7' }, { controllerUser: 'alice' }]) {
        const text = write(values(flags));
        for (const { name, kind } of resourcesOf(values(flags))) expect(text, kind).toContain(name);
      }
    },
  );

  it('put the regions apart into their own partition', () => {
    expect(policyText('instance', values({ region: 'cn-north-1' }), '1')).toContain(
      'arn:aws-cn:s3:::example-crawl/runs/*',
    );
  });

  it('end with lines that fleet.yaml takes', () => {
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

describe('the lines for fleet.yaml', () => {
  it('name the subnets that only you can say where the groups go into another VPC, and are refused until you have', () => {
    const asked = values({ vpc: 'vpc-0a1b2c', mainServer: '203.0.113.7' });
    const config = configOf(` }\n${fleetLines(asked)}`);
    expect(config.aws.subnets).toEqual(['SUBNET-OF-vpc-0a1b2c-IN-ONE-ZONE', 'SUBNET-OF-vpc-0a1b2c-IN-ANOTHER-ZONE']);
    expect(() => values({}, config)).toThrow(/SUBNET-OF-vpc-0a1b2c-IN-ONE-ZONE is no id of a subnet/);
    for (const write of [terraformText, awsCliText])
      expect(write(asked)).toContain('subnets: [SUBNET-OF-vpc-0a1b2c-IN');
  });

  it('leave them out where the default VPC is meant, and keep those that are known', () => {
    expect(fleetLines(values())).not.toContain('subnets');
    const config = configOf(' }\naws: { subnets: [subnet-0a, subnet-0b] }');
    expect(fleetLines(values({ vpc: 'vpc-0a1b2c' }, config))).toContain('subnets: [subnet-0a, subnet-0b]');
  });

  it('open the port that instances call, also where something stands before the listener', () => {
    const config = configOf(' }\nserver: { listen: "0.0.0.0:9000", url: "http://10.0.0.5" }');
    expect(values({}, config)).toMatchObject({ listenPort: 9000, callbackPort: 80 });
    const proxied = configOf(' }\nserver: { listen: "0.0.0.0:9000", url: "http://10.0.0.5:8080" }');
    expect(values({}, proxied)).toMatchObject({ listenPort: 9000, callbackPort: 8080 });
    expect(parse(fleetLines(values({}, proxied)))).toMatchObject({
      server: { listen: '0.0.0.0:9000', url: expect.stringMatching(/:8080$/) as string },
    });
    expect(awsCliText(values({}, proxied))).toMatch(/--group-id "\$main" .*--port 8080 /);
  });
});

describe('setupCommand --out', () => {
  const run = (configPath: string, out: string): string => {
    const lines: string[] = [];
    const output = { json: false, line: (text = '') => void lines.push(text), document: () => {} };
    setupCommand({ configPath, format: 'terraform', out, flags: FLAGS, environment: {} }, output);
    return lines.join('\n');
  };

  it('prints the line that works from where it is given', () => {
    using folder = tempDir();
    expect(run(folder.file('fleet.yaml'), folder.file('new folder'))).toContain(
      `terraform -chdir='${folder.file('new folder')}' init && terraform -chdir='${folder.file('new folder')}' apply`,
    );
  });

  it('says so when the folder cannot be used', () => {
    using folder = tempDir();
    writeFileSync(folder.file('a-file'), '');
    for (const out of ['a-file', 'not/there', 'a-file/below'])
      expect(() => run(folder.file('fleet.yaml'), folder.file(out)), out).toThrow(/crawlfleet\.tf cannot be written/);
  });
});
