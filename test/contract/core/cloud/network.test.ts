/** How a run is reached: groups, scheme and load balancer, looked up before anything is launched. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { AppError } from '../../../../shared/domain/errors.ts';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import {
  instanceGroups,
  launchNetwork,
  type OwnNetwork,
} from '../../../../orchestrator/core/cloud-access/launch-network.ts';
import { Ec2Compute } from '../../../../orchestrator/core/cloud/ec2-compute.ts';
import { MemoryCompute } from '../../../../orchestrator/core/simulation/cloud/memory-compute.ts';
import { MemoryLoadBalancer } from '../../../../orchestrator/core/simulation/cloud/memory-load-balancer.ts';
import { metadataOptions, ownInterfaces } from '../../../../orchestrator/core/cloud/own-vpc.ts';
import { aRun } from '../../../unit/core/builders.ts';
import { startScriptedEndpoint } from './scripted-endpoint.ts';
import { expectFault } from '../../../support/expect-fault.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** How the metadata service fails on a request; null: it answers correctly. */
type Fault = (path: string) => number | 'silence' | null;

/** IMDSv2 of a machine with one interface. */
async function metadata(vpcId: string, fault: Fault = () => null): Promise<string> {
  const interfaceIs: Record<string, string> = {
    'vpc-id': vpcId,
    'security-group-ids': 'sg-m\nsg-ssh',
    'local-ipv4s': '10.0.0.5\n10.0.0.6',
  };
  const server = createServer((request, response) => {
    const path = request.url!.replace('/latest/', '');
    const wrong = fault(path);
    if (wrong === 'silence') return;
    if (wrong !== null) return void response.writeHead(wrong).end();
    const isToken = request.method === 'PUT' && path === 'api/token';
    const known = request.headers['x-aws-ec2-metadata-token'] === 'secret';
    const value = interfaceIs[path.replace('meta-data/network/interfaces/macs/02:00:00:00:00:01/', '')];
    if (isToken) response.end('secret');
    else if (!known) response.writeHead(401).end();
    else if (path === 'meta-data/network/interfaces/macs/') response.end('02:00:00:00:00:01/\n');
    // As on AWS, an interface without a public address has no such path.
    else if (value === undefined) response.writeHead(404).end();
    else response.end(value);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The first `count` requests for paths with this prefix. */
const first = (count: number, begin: string, wrong: number | 'silence'): Fault => {
  let left = count;
  return (path) => (path.startsWith(begin) && left-- > 0 ? wrong : null);
};

describe('the VPC of this machine', () => {
  const SOON = { disabled: false, timeoutMs: 100 };
  const LATE = { disabled: false, timeoutMs: 10_000, restMs: 10_000 };
  const INTERFACE = {
    vpcId: 'vpc-1234',
    securityGroupIds: ['sg-m', 'sg-ssh'],
    addresses: ['10.0.0.5', '10.0.0.6'],
    publicAddresses: [],
  };

  it('comes from its metadata', async () => {
    const AWS_EC2_METADATA_SERVICE_ENDPOINT = await metadata('vpc-1234');
    const options = metadataOptions({ AWS_EC2_METADATA_SERVICE_ENDPOINT });
    expect(await ownInterfaces({ ...options, ...LATE })).toEqual([INTERFACE]);
  });

  it.each<[string, Fault]>([
    ['the first token is refused', first(2, 'api/token', 503)],
    ['requests are throttled', first(2, 'api/token', 429)],
    ['an answer after the token fails', first(2, 'meta-data/network/interfaces/macs/02', 500)],
  ])('comes from there, too, where %s', async (_, fault) => {
    expect(await ownInterfaces({ ...LATE, endpoint: await metadata('vpc-1234', fault) })).toEqual([INTERFACE]);
  });

  it('comes from there where the first request gets no answer', async () => {
    const endpoint = await metadata('vpc-1234', first(1, 'api/token', 'silence'));
    expect(await ownInterfaces({ ...LATE, timeoutMs: 1_000, endpoint })).toEqual([INTERFACE]);
  });

  it('is none where metadata times out, refuses connections, has no tokens or is switched off', async () => {
    const isEc2 = (): boolean => false;
    const silent = await metadata('vpc-1234', () => 'silence');
    expect(await ownInterfaces({ ...SOON, isEc2, endpoint: silent })).toEqual([]);
    expect(await ownInterfaces({ ...SOON, isEc2, endpoint: 'http://127.0.0.1:1' })).toEqual([]);
    expect(await ownInterfaces({ ...LATE, isEc2, endpoint: await metadata('vpc-1234', () => 404) })).toEqual([]);
    const AWS_EC2_METADATA_SERVICE_ENDPOINT = await metadata('vpc-1234');
    const off = { AWS_EC2_METADATA_SERVICE_ENDPOINT, AWS_EC2_METADATA_DISABLED: 'TRUE' };
    expect(await ownInterfaces({ ...metadataOptions(off), isEc2 })).toEqual([]);
  });

  it('is not guessed on an EC2 machine: the error names the setting', async () => {
    const isEc2 = (): boolean => true;
    const silent = { ...SOON, isEc2, endpoint: await metadata('vpc-1234', () => 'silence') };
    const off = { ...SOON, isEc2, disabled: true, endpoint: null };
    for (const options of [silent, off]) {
      const asked = ownInterfaces(options);
      await expect(asked).rejects.toMatchObject({ code: 'config-invalid' });
      await expect(asked).rejects.toThrow('aws.balancer_scheme');
    }
  });

  it.each<[string, Fault, number]>([
    ['fails', first(99, 'meta-data/', 500), 10_000],
    ['is silent', first(99, 'meta-data/network/interfaces/macs/02', 'silence'), 200],
  ])('is not guessed where a service that gave a token %s: it may answer later', async (_, fault, restMs) => {
    const asked = ownInterfaces({ ...LATE, restMs, endpoint: await metadata('vpc-1234', fault) });
    await expect(asked).rejects.toMatchObject({ code: 'aws-failed' });
    await expect(asked).rejects.toThrow('aws.balancer_scheme');
  });
});

describe('the network of a run', () => {
  const hereIs =
    (...vpcIds: string[]): OwnNetwork =>
    () =>
      Promise.resolve(vpcIds.map((vpcId) => ({ vpcId, securityGroupIds: [], addresses: [], publicAddresses: [] })));

  async function stage(change: Partial<ReturnType<typeof aRun>['settings']['aws']> = {}) {
    const compute = new MemoryCompute({ clock: systemClock });
    const balancers = new MemoryLoadBalancer({ clock: systemClock });
    const subnets = await compute.subnets([]);
    const aws = { ...aRun().settings.aws, balancerScheme: 'auto' as const, ...change };
    balancers.zones = [...new Set(subnets.map((s) => s.zone))];
    const kit = (own: OwnNetwork = null) => launchNetwork({ compute, balancers }, aws, subnets, own);
    const users = (vpcId = subnets[0]!.vpcId) =>
      balancers.ensure({
        name: 'users',
        vpcId,
        subnetIds: [],
        securityGroupIds: [],
        listenPort: 80,
        targetPort: 80,
        healthPath: '/',
        tags: {},
      });
    return { compute, balancers, subnets, kit, users };
  }

  it('is internal when this machine is in the VPC of the fleet, else internet-facing, and reports why', async () => {
    const { subnets, kit } = await stage();
    const inside = await kit(hereIs(subnets[0]!.vpcId));
    expect(inside.balancer!.scheme).toBe('internal');
    expect(inside.notes.join()).toContain(`internal: this machine is in ${subnets[0]!.vpcId}, too`);
    const other = await kit(hereIs('vpc-other'));
    expect(other.balancer!.scheme).toBe('internet-facing');
    expect(other.notes.join()).toContain('vpc-other');
    const outside = await kit(hereIs());
    expect(outside.balancer!.scheme).toBe('internet-facing');
    expect(outside.notes.join()).toContain('aws.balancer_scheme: internal');
  });

  it('is refused where neither can be established, unless aws.balancer_scheme is set', async () => {
    const unanswered = (): Promise<never> => Promise.reject(new AppError('aws-failed', 'no answer'));
    await expect((await stage()).kit(unanswered)).rejects.toMatchObject({ code: 'aws-failed' });
    const said = await (await stage({ balancerScheme: 'internet-facing' })).kit(unanswered);
    expect(said.balancer!.scheme).toBe('internet-facing');
  });

  it('is none where aws.load_balancer says so, if this machine reaches the instances', async () => {
    const { subnets, kit } = await stage({ loadBalancer: 'none' });
    const { balancer, notes } = await kit(hereIs(subnets[0]!.vpcId));
    expect(balancer).toBeNull();
    expect(notes.join()).toContain('offers the products to the instances itself');
    await expect(kit(hereIs('vpc-other'))).rejects.toMatchObject({ code: 'config-invalid' });
    const byVpn = await stage({ loadBalancer: 'none', balancerScheme: 'internal' });
    expect((await byVpn.kit(hereIs())).balancer).toBeNull();
    // A dry run's instances are on this machine.
    expect((await kit()).balancer).toBeNull();
  });

  it('is as aws.balancer_scheme requires, and internal without a lookup in a dry run', async () => {
    expect((await (await stage({ balancerScheme: 'internal' })).kit(hereIs())).balancer!.scheme).toBe('internal');
    expect((await (await stage({ endpoint: 'http://127.0.0.1:1' })).kit()).balancer!.scheme).toBe('internal');
  });

  it('is detected at an endpoint that a real run takes for AWS, too', async () => {
    const { subnets, kit } = await stage({ endpoint: 'https://vpce.example' });
    expect((await kit(hereIs())).balancer!.scheme).toBe('internet-facing');
    expect((await kit(hereIs(subnets[0]!.vpcId))).balancer!.scheme).toBe('internal');
  });

  it('takes the groups with the tags of setup, each for its part', async () => {
    const { compute, kit } = await stage();
    compute.taggedGroups.set('tag:crawlfleet:role=instance', 'sg-i').set('tag:crawlfleet:role=balancer', 'sg-b');
    const found = await kit();
    expect(found).toMatchObject({ securityGroupIds: ['sg-i'], balancer: { securityGroupIds: ['sg-b'] } });
    expect(found.notes.join()).not.toContain('default group');
  });

  it('takes, of the groups of several setups in one VPC, those of its owner', async () => {
    const tagsOf: Record<string, string[]> = {
      'sg-a': ['tag:crawlfleet:role=instance', 'tag:crawlfleet:owner=a'],
      'sg-b': ['tag:crawlfleet:role=instance', 'tag:crawlfleet:owner=b'],
    };
    const compute = {
      securityGroups: async ([tag]: readonly string[]) => {
        const found = Object.keys(tagsOf).filter((id) => tagsOf[id]!.includes(tag!));
        if (found.length === 0) throw new AppError('aws-invalid', `no group has ${tag}`);
        return found;
      },
    };
    const groupsFor = async (owner: string) =>
      (await instanceGroups(compute, { securityGroups: [], owner }, 'vpc-1')).ids;
    expect(await groupsFor('a')).toEqual(['sg-a']);
    expect(await groupsFor('b')).toEqual(['sg-b']);
    // As made by earlier versions, which named no owner.
    expect(await groupsFor('c')).toEqual(['sg-a', 'sg-b']);
  });

  it('takes the default group without them, with a note', async () => {
    const found = await (await stage()).kit(hereIs());
    const groups = ['sg-00000001'];
    expect(found).toMatchObject({ securityGroupIds: groups, balancer: { securityGroupIds: groups } });
    expect(found.notes.join()).toContain('crawlfleet:role=instance');
  });

  it('takes configured groups, by id or by tag, and refuses a tag that no group has', async () => {
    const { compute, kit } = await stage({ securityGroups: ['sg-1', 'tag:team=crawl'] });
    await expect(kit()).rejects.toMatchObject({ code: 'aws-invalid' });
    compute.taggedGroups.set('tag:team=crawl', 'sg-t');
    expect((await kit()).securityGroupIds).toEqual(['sg-1', 'sg-t']);
  });

  it('uses a load balancer of the user’s that can serve the subnets', async () => {
    const { kit, users } = await stage({ loadBalancer: 'users' });
    const { loadBalancerArn } = await users();
    expect((await kit()).balancer!.existing).toBe(loadBalancerArn);
  });

  it('refuses one that is missing, in another VPC, or not enabled in a zone of the subnets', async () => {
    const missing = await stage({ loadBalancer: 'users' });
    await expect(missing.kit()).rejects.toThrow('ELBv2 does not know users');
    await missing.users('vpc-other');
    await expect(missing.kit()).rejects.toThrow('is in vpc-other');
    const zones = await stage({ loadBalancer: 'users' });
    await zones.users();
    zones.balancers.zones = zones.balancers.zones.slice(0, 1);
    await expect(zones.kit()).rejects.toThrow(/is not enabled in .*, where it would send nothing/);
  });
});

describe('security groups by their tag', () => {
  const group = (id: string, vpc: string, key: string, value: string): string =>
    `<item><groupId>${id}</groupId><vpcId>${vpc}</vpcId><tagSet><item><key>${key}</key><value>${value}</value></item></tagSet></item>`;
  const page = (items: string, token = ''): { status: number; body: string } => ({
    status: 200,
    body: `<DescribeSecurityGroupsResponse><securityGroupInfo>${items}</securityGroupInfo>${token}</DescribeSecurityGroupsResponse>`,
  });

  it('are only those of the VPC, over more than one page', async () => {
    const server = await startScriptedEndpoint((call) =>
      call.get('NextToken') === null
        ? page(
            group('sg-1', 'vpc-1', 'crawlfleet:role', 'instance') + group('sg-2', 'vpc-1', 'role', 'instance'),
            '<nextToken>more</nextToken>',
          )
        : page(
            group('sg-3', 'vpc-2', 'crawlfleet:role', 'instance') +
              group('sg-4', 'vpc-1', 'crawlfleet:role', 'instance') +
              group('sg-5', 'vpc-1', 'crawlfleet:role', 'balancer'),
          ),
    );
    stops.push(() => server.stop());
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const ec2 = new Ec2Compute({ region: 'ap-northeast-1', endpoint: server.endpoint, credentials });
    stops.push(() => ec2.close());
    expect(await ec2.securityGroups(['tag:crawlfleet:role=instance'], 'vpc-1')).toEqual(['sg-1', 'sg-4']);
    await expectFault(ec2.securityGroups(['tag:crawlfleet:role=main'], 'vpc-1'), 'aws-invalid');
  });
});
