/** Faults of the sandbox on demand: conditions that last, faults of one instance, and the bill. */
import { existsSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConditionsChange } from '../../../sandbox/conditions.ts';
import type { BillLine } from '../../../sandbox/ec2/billing.ts';
import { boot, describe as look, inState, launch, VPC } from '../../support/sandbox/boot.ts';
import { eventually, refusal, type SandboxClients } from '../../support/sandbox/clients.ts';
import type { TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { useSandbox } from './use-sandbox.ts';

let sandbox: TestSandbox;
let clients: SandboxClients;
let bundleUrl: string;

useSandbox((made) => ({ sandbox, clients, bundleUrl } = made));
afterEach(() => sandbox.control('DELETE', 'conditions'));

const be = (conditions: ConditionsChange) => sandbox.control('PATCH', 'conditions', conditions);
const inject = (id: string, what: string) => sandbox.control('POST', `instances/${id}`, { do: what });
const terminate = (...InstanceIds: string[]) => clients.ec2.terminateInstances({ InstanceIds });

const pidOf = async (id: string): Promise<number | null> =>
  (await sandbox.instances()).find((instance) => instance.id === id)!.pid;

describe('conditions', () => {
  it('have defaults, change one by one and are reset', async () => {
    const usual = await sandbox.control('GET', 'conditions');
    expect(usual).toMatchObject({ unknownMs: 0, pools: [], vcpuQuota: null, requestLimits: null, balancerNodes: 1 });
    await be({ unknownMs: 5 });
    expect(await be({ vcpuQuota: 4 })).toMatchObject({ unknownMs: 5, vcpuQuota: 4 });
    expect(await sandbox.control('DELETE', 'conditions')).toEqual(usual);
  });

  it('are refused when they are invalid', async () => {
    await expect(sandbox.control('PATCH', 'conditions', { unknown: 1 })).rejects.toThrow('400');
    await expect(be({ balancerNodes: 0 })).rejects.toThrow('400');
  });
});

describe('a policy that demands tags', () => {
  const tagged = (...types: ('instance' | 'volume' | 'network-interface')[]) =>
    types.map((ResourceType) => ({ ResourceType, Tags: [{ Key: 'CostCenter', Value: '4711' }] }));

  it('denies what is created without them, in a dry run too', async () => {
    await be({ tagPolicy: ['CostCenter'] });
    const TagSpecifications = tagged('instance', 'volume');
    expect((await refusal(launch(clients, { TagSpecifications }))).code).toBe('UnauthorizedOperation');
    expect((await refusal(launch(clients, { DryRun: true }))).code).toBe('UnauthorizedOperation');
    const { InstanceId } = await launch(clients, {
      TagSpecifications: tagged('instance', 'volume', 'network-interface'),
    });
    await terminate(InstanceId!);
    const group = { Name: 'untagged', Protocol: 'HTTP', Port: 80, VpcId: VPC } as const;
    expect((await refusal(clients.elb.createTargetGroup(group))).code).toMatch(/^AccessDenied/);
  });
});

describe('faults of an instance', () => {
  it('kills its program, which is started again; a crash is permanent, and EC2 notices neither', async () => {
    const { id } = await boot(clients, bundleUrl);
    const first = (await pidOf(id))!;
    await inject(id, 'kill');
    const second = await eventually('another process', async () => {
      const pid = await pidOf(id);
      return pid === null || pid === first ? null : pid;
    });
    await inject(id, 'crash');
    await eventually('the end of it', async () => (existsSync(`/proc/${second}`) ? null : true));
    expect((await look(clients, id)).State?.Name).toBe('running');
    await expect(inject(id, 'freeze')).rejects.toThrow('409');
    await terminate(id);
    await inState(clients, id, 'terminated');
  });

  it('retires it to stopped, or ends it, without any call', async () => {
    const [retired, ended] = [await boot(clients, bundleUrl), await boot(clients, bundleUrl)];
    await inject(retired.id, 'retire');
    await inject(ended.id, 'terminate');
    expect((await inState(clients, retired.id, 'stopped')).StateReason?.Code).toBe('Server.ScheduledStop');
    expect((await inState(clients, ended.id, 'terminated')).StateReason?.Code).toBe('Server.InternalError');
    expect(await pidOf(retired.id)).toBeNull();
  });

  it('protects it from termination, as the attribute does', async () => {
    const { InstanceId } = await launch(clients, { DisableApiTermination: true });
    const id = InstanceId!;
    const { DisableApiTermination } = await clients.ec2.describeInstanceAttribute({
      InstanceId,
      Attribute: 'disableApiTermination',
    });
    expect(DisableApiTermination?.Value).toBe(true);
    expect((await refusal(terminate(id))).code).toBe('OperationNotPermitted');
    await clients.ec2.modifyInstanceAttribute({ InstanceId, DisableApiTermination: { Value: false } });
    await inject(id, 'protect');
    expect((await refusal(terminate(id))).code).toBe('OperationNotPermitted');
    await inject(id, 'unprotect');
    await terminate(id);
    await inState(clients, id, 'terminated');
  });

  it('is refused for an unknown instance or action', async () => {
    await expect(inject('i-00000000000000000', 'freeze')).rejects.toThrow('404');
    const { InstanceId } = await launch(clients);
    await expect(inject(InstanceId!, 'explode')).rejects.toThrow('400');
  });
});

it('bills each instance by the second from a minute on, even when EC2 has forgotten it', async () => {
  await be({ terminatedShownMs: 1 });
  const { InstanceId } = await launch(clients);
  await inState(clients, InstanceId!, 'running');
  await terminate(InstanceId!);
  await eventually('EC2 to forget it', async () =>
    look(clients, InstanceId!).then(
      () => null,
      () => true,
    ),
  );
  const bill = (await sandbox.control('GET', 'billing')) as BillLine[];
  expect(bill.find(({ id }) => id === InstanceId)).toMatchObject({ starts: 1, billedSeconds: 60 });
});
