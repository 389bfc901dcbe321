/** Whether this machine's security groups let instances in, from its metadata to EC2's rules. */
import { afterEach, describe, expect, it } from 'vitest';
import { lookAtDoors } from '../../../../orchestrator/core/checks/callback.ts';
import type { CheckContext } from '../../../../orchestrator/core/checks/check.ts';
import type { OwnInterface } from '../../../../orchestrator/core/cloud/own-vpc.ts';
import { startScriptedEndpoint } from '../cloud/scripted-endpoint.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const RULES = `<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>sg-main</groupId><ipPermissions><item>
  <ipProtocol>tcp</ipProtocol><fromPort>8700</fromPort><toPort>8700</toPort><groups><item><groupId>sg-i</groupId></item></groups>
</item></ipPermissions></item></securityGroupInfo></DescribeSecurityGroupsResponse>`;
const OWN: OwnInterface = {
  vpcId: 'vpc-1',
  securityGroupIds: ['sg-main'],
  addresses: ['10.0.0.5'],
  publicAddresses: ['203.0.113.7'],
};

/** EC2 answers with the rules unless it is set to refuse. */
async function context(url: string, own: () => Promise<OwnInterface[]>, isRefused = false): Promise<CheckContext> {
  const server = await startScriptedEndpoint(() =>
    isRefused
      ? { status: 403, body: '<Response><Errors><Error><Code>UnauthorizedOperation</Code></Error></Errors></Response>' }
      : { status: 200, body: RULES },
  );
  stops.push(() => server.stop());
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return {
    config: { values: { server: { url } } },
    facts: {
      aws: () => ({ region: 'ap-northeast-1', endpoint: server.endpoint, credentials }),
      ownInterfaces: own,
      groups: () => Promise.resolve(['sg-i']),
    },
  } as unknown as CheckContext;
}

describe('the groups of this machine', () => {
  const here = (): Promise<OwnInterface[]> => Promise.resolve([OWN]);

  it.each([
    ['at its private address', 'http://10.0.0.5:8700', '10.0.0.5', 'ok'],
    ['at another port', 'http://10.0.0.5:9000', '10.0.0.5', 'warning'],
    [
      'at its public address, where the group of the instances does not count',
      'http://203.0.113.7:8700',
      '203.0.113.7',
      'warning',
    ],
  ])('are checked %s', async (_, url, address, level) => {
    const found = await lookAtDoors(await context(url, here), [address]);
    expect(found).toMatchObject([{ level, text: expect.stringContaining('sg-main') as string }]);
  });

  const URL = 'http://10.0.0.5:8700';
  it.each<[string, () => Promise<CheckContext>, string]>([
    ['for an address that is not this machine’s', () => context(URL, here), '10.0.0.6'],
    ['for a machine outside of EC2', () => context(URL, () => Promise.resolve([])), '10.0.0.5'],
    [
      'where the metadata is not available',
      () => context(URL, () => Promise.reject(new Error('no answer'))),
      '10.0.0.5',
    ],
    ['where EC2 does not show the rules', () => context(URL, here, true), '10.0.0.5'],
  ])('cannot be checked %s, which is reported', async (_, make, address) => {
    expect(await lookAtDoors(await make(), [address])).toMatchObject([{ level: 'warning', standing: true }]);
  });
});
