/** The sandbox's ELBv2 through AWS's own SDK, and its load balancer through the requests that pass it. */
import { describe, expect, it } from 'vitest';
import { SUBNETS, VPC, boot } from '../../support/sandbox/boot.ts';
import { eventually, refusal, type SandboxClients } from '../../support/sandbox/clients.ts';
import { TEST_BUNDLE_PORT } from '../../support/sandbox/test-bundle.ts';
import { useSandbox } from './use-sandbox.ts';

let clients: SandboxClients;
let bundleUrl: string;
let names = 0;

useSandbox((made) => ({ clients, bundleUrl } = made));

const newName = (): string => `test-${++names}`;

const codeOf = async (call: Promise<unknown>): Promise<string> => (await refusal(call)).code;

async function createBalancer(Name: string): Promise<{ arn: string; dnsName: string }> {
  const reply = await clients.elb.createLoadBalancer({ Name, Subnets: [...SUBNETS], Scheme: 'internal' });
  const { LoadBalancerArn, DNSName } = reply.LoadBalancers![0]!;
  return { arn: LoadBalancerArn!, dnsName: DNSName! };
}

async function createGroup(Name: string, path = '/healthz'): Promise<string> {
  const reply = await clients.elb.createTargetGroup({
    Name,
    Protocol: 'HTTP',
    Port: TEST_BUNDLE_PORT,
    VpcId: VPC,
    HealthCheckPath: path,
    HealthCheckIntervalSeconds: 5,
    HealthCheckTimeoutSeconds: 2,
    HealthyThresholdCount: 2,
    UnhealthyThresholdCount: 2,
  });
  return reply.TargetGroups![0]!.TargetGroupArn!;
}

/** A load balancer with one listener and one group; its base URL. */
async function setUp(
  path?: string,
): Promise<{ url: string; balancerArn: string; groupArn: string; listenerArn: string }> {
  const name = newName();
  const { arn, dnsName } = await createBalancer(name);
  const groupArn = await createGroup(name, path);
  const reply = await clients.elb.createListener({
    LoadBalancerArn: arn,
    Protocol: 'HTTP',
    Port: 8_080,
    DefaultActions: [{ Type: 'forward', TargetGroupArn: groupArn }],
  });
  const listenerArn = reply.Listeners![0]!.ListenerArn!;
  return { url: `http://${dnsName}:8080`, balancerArn: arn, groupArn, listenerArn };
}

const register = (TargetGroupArn: string, ...ids: string[]) =>
  clients.elb.registerTargets({ TargetGroupArn, Targets: ids.map((Id) => ({ Id })) });

async function healthOf(TargetGroupArn: string): Promise<Record<string, string>> {
  const reply = await clients.elb.describeTargetHealth({ TargetGroupArn });
  return Object.fromEntries(reply.TargetHealthDescriptions!.map((d) => [d.Target!.Id!, d.TargetHealth!.State!]));
}

const inHealth = (group: string, id: string, state: string): Promise<true> =>
  eventually(`${id} to be ${state}`, async () => ((await healthOf(group))[id] === state ? true : null));

const whoAnswers = async (url: string): Promise<string | null> =>
  (await fetch(`${url}/healthz`)).headers.get('x-instance');

describe('the load balancer', () => {
  it('distributes requests in turn among healthy targets', async () => {
    const { url, groupArn } = await setUp();
    const booted = await Promise.all([1, 2, 3].map(() => boot(clients, bundleUrl)));
    const ids = booted.map(({ id }) => id);
    await register(groupArn, ...ids);
    for (const id of ids) await inHealth(groupArn, id, 'healthy');
    const served: (string | null)[] = [];
    for (let i = 0; i < 9; i++) served.push(await whoAnswers(url));
    for (const id of ids) expect(served.filter((s) => s === id)).toHaveLength(3);
  });

  it('streams bodies in both directions and names the client', async () => {
    const { url, groupArn } = await setUp();
    const { id } = await boot(clients, bundleUrl);
    await register(groupArn, id);
    await inHealth(groupArn, id, 'healthy');
    const body = 'x'.repeat(3_000_000);
    expect(await (await fetch(`${url}/echo`, { method: 'POST', body })).text()).toBe(body);
    const headers = (await (await fetch(`${url}/headers`)).json()) as Record<string, string>;
    expect(headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-port': '8080',
      'x-forwarded-proto': 'http',
    });
    expect(headers['host']).toBe(new URL(url).host);
  });

  it('answers 503 without targets, 502 when a target breaks off, 504 when it is silent for the idle time', async () => {
    const { url, groupArn, balancerArn } = await setUp();
    expect((await fetch(`${url}/healthz`)).status).toBe(503);
    const { id } = await boot(clients, bundleUrl);
    await register(groupArn, id);
    await inHealth(groupArn, id, 'healthy');
    expect((await fetch(`${url}/reset`)).status).toBe(502);
    await clients.elb.modifyLoadBalancerAttributes({
      LoadBalancerArn: balancerArn,
      Attributes: [{ Key: 'idle_timeout.timeout_seconds', Value: '1' }],
    });
    expect((await fetch(`${url}/hang`)).status).toBe(504);
  });

  it('fails open: with unhealthy targets only, all of them are tried', async () => {
    const { url, groupArn } = await setUp('/no-such-page');
    const { id } = await boot(clients, bundleUrl);
    await register(groupArn, id);
    await inHealth(groupArn, id, 'unhealthy');
    expect(await whoAnswers(url)).toBe(id);
  });

  it('sends nothing to a stopped instance and shows it unused', async () => {
    const { url, groupArn } = await setUp();
    const { id } = await boot(clients, bundleUrl);
    await register(groupArn, id);
    await inHealth(groupArn, id, 'healthy');
    await clients.ec2.stopInstances({ InstanceIds: [id] });
    await inHealth(groupArn, id, 'unused');
    expect((await fetch(`${url}/healthz`)).status).toBe(503);
  });
});

describe('targets', () => {
  it('are unused while no listener forwards to their group, or when they are not registered', async () => {
    const group = await createGroup(newName());
    const { id } = await boot(clients, bundleUrl);
    await register(group, id);
    expect(await healthOf(group)).toEqual({ [id]: 'unused' });
    const reply = await clients.elb.describeTargetHealth({
      TargetGroupArn: group,
      Targets: [{ Id: 'i-00000000000000000' }],
    });
    expect(reply.TargetHealthDescriptions![0]!.TargetHealth).toMatchObject({
      State: 'unused',
      Reason: 'Target.NotRegistered',
    });
    await clients.elb.deregisterTargets({ TargetGroupArn: group, Targets: [{ Id: 'i-00000000000000000' }] });
  });
});

describe('the control plane', () => {
  it('makes a load balancer and a group once per name, and refuses other settings under it', async () => {
    const name = newName();
    const first = await createBalancer(name);
    expect(await createBalancer(name)).toEqual(first);
    const other = clients.elb.createLoadBalancer({ Name: name, Subnets: [...SUBNETS], Scheme: 'internet-facing' });
    expect(await codeOf(other)).toBe('DuplicateLoadBalancerNameException');
    expect(await createGroup(name)).toBe(await createGroup(name));
    expect(await codeOf(createGroup(name, '/other'))).toBe('DuplicateTargetGroupNameException');
  });

  it('shows listeners and groups of a load balancer, tags and attributes', async () => {
    const { balancerArn, groupArn, listenerArn } = await setUp();
    const listeners = await clients.elb.describeListeners({ LoadBalancerArn: balancerArn });
    expect(listeners.Listeners).toMatchObject([
      { ListenerArn: listenerArn, Port: 8_080, DefaultActions: [{ TargetGroupArn: groupArn }] },
    ]);
    const groups = await clients.elb.describeTargetGroups({ LoadBalancerArn: balancerArn });
    expect(groups.TargetGroups?.map((g) => g.TargetGroupArn)).toEqual([groupArn]);
    await clients.elb.addTags({ ResourceArns: [balancerArn], Tags: [{ Key: 'run', Value: 'r1' }] });
    const tags = await clients.elb.describeTags({ ResourceArns: [balancerArn] });
    expect(tags.TagDescriptions).toEqual([{ ResourceArn: balancerArn, Tags: [{ Key: 'run', Value: 'r1' }] }]);
    const attributes = await clients.elb.describeTargetGroupAttributes({ TargetGroupArn: groupArn });
    expect(attributes.Attributes).toContainEqual({ Key: 'deregistration_delay.timeout_seconds', Value: '300' });
  });

  it('deletes listener, load balancer, then group; a group in use is kept, a second delete is accepted', async () => {
    const { url, balancerArn, groupArn, listenerArn } = await setUp();
    expect(await codeOf(clients.elb.deleteTargetGroup({ TargetGroupArn: groupArn }))).toBe('ResourceInUseException');
    await clients.elb.deleteListener({ ListenerArn: listenerArn });
    expect(await codeOf(clients.elb.deleteListener({ ListenerArn: listenerArn }))).toBe('ListenerNotFoundException');
    for (let i = 0; i < 2; i++) {
      await clients.elb.deleteLoadBalancer({ LoadBalancerArn: balancerArn });
      await clients.elb.deleteTargetGroup({ TargetGroupArn: groupArn });
    }
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  it.each([
    ['a balancer by name', () => clients.elb.describeLoadBalancers({ Names: ['none'] }), 'LoadBalancerNotFound'],
    ['a group by name', () => clients.elb.describeTargetGroups({ Names: ['none'] }), 'TargetGroupNotFound'],
    ['health of a group', () => clients.elb.describeTargetHealth({ TargetGroupArn: 'x' }), 'TargetGroupNotFound'],
    ['one subnet', () => clients.elb.createLoadBalancer({ Name: 'one', Subnets: [SUBNETS[0]] }), 'ValidationError'],
    ['a bad name', () => clients.elb.createLoadBalancer({ Name: '-x-', Subnets: [...SUBNETS] }), 'ValidationError'],
  ])('refuses %s as AWS does', async (_what, call, code) => {
    expect((await refusal(call())).code.replace(/Exception$/, '')).toBe(code);
  });
});
