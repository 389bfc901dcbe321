/** Regions of one sandbox: a call is in the region that it is signed for, and one of them may fail whole. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAwsAdapters } from '../../../orchestrator/core/cloud/aws-clients.ts';
import { TAG } from '../../../orchestrator/core/cloud/compute.ts';
import { clientsFor } from '../../support/sandbox/clients.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { CREDENTIALS } from '../faults-sdk/sandbox-cloud.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ region: 'eu-west-1' });
});
afterAll(() => sandbox.stop());

const open = (region: string) => createAwsAdapters({ region, endpoint: sandbox.endpoint, credentials: CREDENTIALS });
const RUN = { key: TAG.run, value: 'r1' };

async function launchIn({ compute }: ReturnType<typeof open>): Promise<string> {
  const [subnet] = await compute.subnets([]);
  const result = await compute.launch({
    clientToken: 'the same in each region',
    instanceType: 't4g.nano',
    imageId: await compute.image(null, 'arm64'),
    subnetId: subnet!.id,
    securityGroupIds: await compute.securityGroups([], subnet!.vpcId),
    instanceProfile: null,
    userData: '',
    tags: { [TAG.run]: RUN.value },
  });
  if (result.kind !== 'launched') throw new Error(result.message);
  return result.instance.id;
}

describe('the regions of a sandbox', () => {
  it('stand in the status of each instance', async () => {
    const [west, east] = [open('eu-west-1'), open('us-east-1')];
    const [one, two] = [await launchIn(west), await launchIn(east)];
    const status = (await sandbox.control('GET', 'status')) as { instances: { id: string; region: string }[] };
    expect(status.instances).toMatchObject([
      { id: one, region: 'eu-west-1' },
      { id: two, region: 'us-east-1' },
    ]);
    west.close();
    east.close();
  });

  it('give the subnets with a tag', async () => {
    const { ec2 } = clientsFor(sandbox);
    const west = open('eu-west-1');
    const [first] = await west.compute.subnets([]);
    await ec2.createTags({ Resources: [first!.id], Tags: [{ Key: 'fleet', Value: 'crawl' }] });
    expect(await west.compute.subnets(['tag:fleet=crawl'])).toEqual([first]);
    await expect(west.compute.subnets(['tag:fleet=other'])).rejects.toThrow('no subnet has tag:fleet=other');
    west.close();
  });

  it('fail whole one by one: calls, machines and load balancers of the others go on', async () => {
    const [west, east] = [open('eu-west-1'), open('us-east-1')];
    const subnets = await east.compute.subnets([]);
    const balancer = await east.balancers.ensure({
      name: 'b',
      vpcId: subnets[0]!.vpcId,
      subnetIds: subnets.map((s) => s.id),
      securityGroupIds: await east.compute.securityGroups([], subnets[0]!.vpcId),
      listenPort: 8080,
      targetPort: 8080,
      healthPath: '/',
      tags: {},
    });
    expect((await fetch(balancer.url)).status).toBe(503);
    await sandbox.control('PATCH', 'conditions', { outages: ['us-east-1'] });
    await expect(east.compute.list(RUN)).rejects.toMatchObject({ code: 'aws-failed' });
    await expect(fetch(balancer.url)).rejects.toThrow();
    expect(await west.compute.list(RUN)).toHaveLength(1);
    await sandbox.control('DELETE', 'conditions');
    expect((await fetch(balancer.url)).status).toBe(503);
    expect(await east.compute.list(RUN)).toHaveLength(1);
    west.close();
    east.close();
  });
});
