import { afterEach, describe, expect, it } from 'vitest';
import { Elbv2LoadBalancer } from '../../../../orchestrator/core/cloud/elbv2-load-balancer.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { type Answer, elbError, EMPTY_200, type ScriptedEndpoint, startScriptedEndpoint } from './scripted-endpoint.ts';
import { expectFault } from '../../../support/expect-fault.ts';

/** Advances virtual time until the promise is settled, and settles the same way. */
async function passTimeUntil<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  const state = { settled: false };
  const settle = () => (state.settled = true);
  promise.then(settle, settle);
  while (!state.settled) await clock.advance(1_000);
  return promise;
}

const BALANCER = { url: 'http://b', loadBalancerArn: 'arn:b', targetGroupArn: 'arn:g', listenerArn: 'arn:l' };
const REQUEST = {
  name: 'crawl-1',
  vpcId: 'vpc-1',
  subnetIds: ['subnet-1', 'subnet-2'],
  securityGroupIds: ['sg-1'],
  listenPort: 80,
  targetPort: 8_080,
  healthPath: '/healthz',
  tags: { 'crawlfleet:run': 'run-1' },
};

const result = (action: string, body: string): Answer => ({
  status: 200,
  body: `<${action}Response><${action}Result>${body}</${action}Result></${action}Response>`,
});

const GROUP =
  '<TargetGroups><member><TargetGroupArn>arn:g</TargetGroupArn><TargetGroupName>crawl-1</TargetGroupName></member></TargetGroups>';
const LB =
  '<LoadBalancers><member><LoadBalancerArn>arn:b</LoadBalancerArn><LoadBalancerName>crawl-1</LoadBalancerName><DNSName>b.test</DNSName><State><Code>STATE</Code></State></member></LoadBalancers>';
const LISTENER = '<Listeners><member><ListenerArn>arn:l</ListenerArn><Port>80</Port></member></Listeners>';

describe('Elbv2LoadBalancer against a scripted endpoint', () => {
  let endpoint: ScriptedEndpoint | null = null;
  let balancers: Elbv2LoadBalancer | null = null;
  afterEach(async () => {
    balancers?.close();
    await endpoint?.stop();
    endpoint = balancers = null;
  });

  async function balancersAt(answer: (action: string, call: URLSearchParams, n: number) => Answer) {
    const clock = new VirtualClock();
    endpoint = await startScriptedEndpoint((call, n) => answer(call.get('Action')!, call, n));
    balancers = new Elbv2LoadBalancer({
      region: 'ap-northeast-1',
      endpoint: endpoint.endpoint,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      timeoutMs: 2_000,
      maxAttempts: 1,
      clock,
    });
    return { balancers, clock, calls: endpoint.calls };
  }

  it('makes what is missing, with quick health checks and no deregistration delay', async () => {
    const { balancers, calls } = await balancersAt((action) => {
      switch (action) {
        case 'DescribeTargetGroups':
          return elbError('TargetGroupNotFound');
        case 'DescribeLoadBalancers':
          return elbError('LoadBalancerNotFound');
        case 'CreateTargetGroup':
          return result(action, GROUP);
        case 'CreateLoadBalancer':
          return result(action, LB);
        case 'CreateListener':
          return result(action, LISTENER);
        case 'DescribeListeners':
          return result(action, '<Listeners/>');
        default:
          return result(action, '');
      }
    });
    expect(await balancers.ensure(REQUEST)).toEqual({ ...BALANCER, url: 'http://b.test' });
    const call = (action: string) => Object.fromEntries(calls.find((c) => c.get('Action') === action)!);
    expect(call('CreateTargetGroup')).toMatchObject({
      HealthCheckPath: '/healthz',
      HealthCheckIntervalSeconds: '10',
      HealthyThresholdCount: '2',
      UnhealthyThresholdCount: '2',
      Port: '8080',
      TargetType: 'instance',
      'Tags.member.1.Value': 'run-1',
    });
    expect(call('ModifyTargetGroupAttributes')).toMatchObject({
      'Attributes.member.1.Key': 'deregistration_delay.timeout_seconds',
      'Attributes.member.1.Value': '0',
    });
    expect(call('CreateLoadBalancer')).toMatchObject({ Scheme: 'internal', 'Subnets.member.2': 'subnet-2' });
    expect(call('CreateListener')).toMatchObject({
      Protocol: 'HTTP',
      Port: '80',
      'DefaultActions.member.1.TargetGroupArn': 'arn:g',
    });
  });

  it('makes an HTTPS listener with the certificate, on its own balancer and on that of the user', async () => {
    const { balancers, calls } = await balancersAt((action) => {
      if (action === 'DescribeTargetGroups') return result(action, GROUP);
      if (action === 'DescribeLoadBalancers') return result(action, LB);
      if (action === 'CreateListener') return result(action, LISTENER);
      return result(action, action === 'DescribeListeners' ? '<Listeners/>' : '');
    });
    const request = { ...REQUEST, certificate: 'arn:c', listenPort: 8080 };
    expect(await balancers.ensure(request)).toMatchObject({ url: 'https://b.test:8080' });
    expect(await balancers.ensure({ ...request, existing: 'crawl-1' })).toMatchObject({ url: 'https://b.test:80' });
    const made = calls
      .filter((call) => call.get('Action') === 'CreateListener')
      .map((call) => Object.fromEntries(call));
    expect(made).toHaveLength(2);
    for (const call of made)
      expect(call).toMatchObject({ Protocol: 'HTTPS', 'Certificates.member.1.CertificateArn': 'arn:c' });
    expect(made.every((call) => call.SslPolicy!.includes('TLS13-1-2'))).toBe(true);
  });

  it('uses a load balancer that another process made between the check and the creation', async () => {
    let made = false;
    const { balancers } = await balancersAt((action) => {
      if (action === 'DescribeTargetGroups') return made ? result(action, GROUP) : elbError('TargetGroupNotFound');
      if (action === 'CreateTargetGroup') {
        made = true;
        return elbError('DuplicateTargetGroupName');
      }
      if (action === 'DescribeLoadBalancers') return result(action, LB);
      if (action === 'DescribeListeners') return result(action, '<Listeners/>');
      return action === 'CreateListener' ? result(action, LISTENER) : elbError('InvalidAction');
    });
    expect(await balancers.ensure(REQUEST)).toMatchObject({ targetGroupArn: 'arn:g' });
  });

  it('waits for a target group that its load balancer still uses', async () => {
    let refusals = 3;
    const { balancers, clock, calls } = await balancersAt((action) =>
      action === 'DeleteTargetGroup' && refusals-- > 0 ? elbError('ResourceInUse') : result(action, ''),
    );
    await passTimeUntil(clock, balancers.remove(BALANCER));
    expect(calls.filter((c) => c.get('Action') === 'DeleteTargetGroup')).toHaveLength(4);
  });

  it('reports that the target group stays in use', async () => {
    const { balancers, clock } = await balancersAt((action) =>
      action === 'DeleteTargetGroup' ? elbError('ResourceInUse') : result(action, ''),
    );
    await expectFault(passTimeUntil(clock, balancers.remove(BALANCER)), 'aws-failed', 'ResourceInUse');
  });

  it('removes the rest when parts of it are gone already', async () => {
    const { balancers, calls } = await balancersAt((action) =>
      action === 'DeleteTargetGroup' ? result(action, '') : elbError(`${action.slice('Delete'.length)}NotFound`),
    );
    await balancers.remove(BALANCER);
    expect(calls.map((c) => c.get('Action'))).toEqual(['DeleteListener', 'DeleteLoadBalancer', 'DeleteTargetGroup']);
  });

  it.each(['AccessDenied', 'InvalidAction'])(
    'makes a balancer although ModifyTargetGroupAttributes answers %s',
    async (code) => {
      const { balancers } = await balancersAt((action) => {
        if (action === 'ModifyTargetGroupAttributes') return elbError(code);
        if (action === 'DescribeTargetGroups') return result(action, GROUP);
        if (action === 'DescribeLoadBalancers') return result(action, LB);
        return result(action, action === 'CreateListener' ? LISTENER : '<Listeners/>');
      });
      expect(await balancers.ensure(REQUEST)).toMatchObject({ targetGroupArn: 'arn:g' });
    },
  );

  const OWNED = { name: 'crawl-1', loadBalancerArn: 'arn:b', targetGroupArn: 'arn:g', createdAtMs: null, tags: {} };
  const JOINED = GROUP.replace('</member>', '<LoadBalancerArns><member>arn:user</member></LoadBalancerArns></member>');

  it.each([
    // The load balancer takes its listeners along.
    ['DeleteListener', 'remove', [], ['DeleteLoadBalancer', 'DeleteTargetGroup']],
    ['DeleteLoadBalancer', 'remove', ['load balancer'], ['DeleteListener', 'DeleteTargetGroup']],
    ['DeleteTargetGroup', 'remove', ['target group'], ['DeleteListener', 'DeleteLoadBalancer']],
    ['DescribeListeners', 'removeByName', ['listener'], ['DeleteLoadBalancer', 'DeleteTargetGroup']],
    ['DeleteLoadBalancer', 'removeOwned', ['load balancer'], ['DeleteListener', 'DeleteTargetGroup']],
  ] as const)('%s refused to %s: %j is left, and the rest is removed', async (refused, how, left, removed) => {
    const { balancers, calls } = await balancersAt((action) => {
      if (action === refused) return elbError('AccessDenied');
      if (action === 'DescribeTargetGroups') return result(action, JOINED);
      if (action === 'DescribeLoadBalancers') return result(action, LB);
      const forwards =
        '<DefaultActions><member><TargetGroupArn>arn:g</TargetGroupArn></member></DefaultActions></member>';
      return result(action, action === 'DescribeListeners' ? LISTENER.replace('</member>', forwards) : '');
    });
    const work = {
      remove: () => balancers.remove(BALANCER),
      removeByName: () => balancers.removeByName('crawl-1'),
      removeOwned: () => balancers.removeOwned(OWNED),
    }[how]();
    if (left.length === 0) await work;
    else
      await expect(work).rejects.toMatchObject({
        code: 'aws-denied',
        parts: left,
        message: expect.stringContaining('AccessDenied'),
      });
    const deleted = calls.map((c) => c.get('Action')!).filter((a) => a.startsWith('Delete') && a !== refused);
    expect(deleted.toSorted()).toEqual(removed);
  });

  it('does not wait for a target group that a load balancer uses which cannot be deleted', async () => {
    const { balancers, calls } = await balancersAt((action) =>
      elbError(action === 'DeleteTargetGroup' ? 'ResourceInUse' : 'AccessDenied'),
    );
    const left = ['load balancer', 'target group'];
    await expect(balancers.remove(BALANCER)).rejects.toMatchObject({ code: 'aws-denied', parts: left });
    expect(calls.filter((c) => c.get('Action') === 'DeleteTargetGroup')).toHaveLength(1);
  });

  it.each([
    ['provisioning', false],
    ['active', true],
    ['active_impaired', true],
  ])('reports whether a load balancer that is %s is active: %s', async (state, active) => {
    const { balancers } = await balancersAt((action) => result(action, LB.replace('STATE', state)));
    expect(await balancers.isActive(BALANCER)).toBe(active);
  });

  it('reports a load balancer that failed to be provisioned', async () => {
    const { balancers } = await balancersAt((action) => result(action, LB.replace('STATE', 'failed')));
    await expect(balancers.isActive(BALANCER)).rejects.toMatchObject({ code: 'aws-failed' });
  });

  it('never takes an empty answer for "no targets"', async () => {
    const { balancers } = await balancersAt(() => EMPTY_200);
    await expect(balancers.health(BALANCER)).rejects.toMatchObject({ code: 'aws-failed' });
  });

  it('reports that the endpoint has no ELBv2', async () => {
    const { balancers } = await balancersAt(() => elbError('InvalidAction'));
    await expect(balancers.ensure(REQUEST)).rejects.toMatchObject({ code: 'aws-capability-missing' });
  });

  it.each([
    [
      'unhealthy',
      '<Reason>Target.ResponseCodeMismatch</Reason><Description>Health checks failed with these codes: [503]</Description>',
      'Target.ResponseCodeMismatch: Health checks failed with these codes: [503]',
    ],
    ['unused', '<Reason>Target.NotInUse</Reason>', 'Target.NotInUse'],
    ['healthy', '', null],
  ])('F13: explains why a target is %s', async (state, reason, why) => {
    const target = `<member><Target><Id>i-1</Id></Target><TargetHealth><State>${state}</State>${reason}</TargetHealth></member>`;
    await balancersAt(() =>
      result('DescribeTargetHealth', `<TargetHealthDescriptions>${target}</TargetHealthDescriptions>`),
    );
    expect(await balancers!.whyUnhealthy(BALANCER, 'i-1')).toBe(why);
    expect(await balancers!.whyUnhealthy(BALANCER, 'i-2')).toBeNull();
  });

  it('lists nothing at an endpoint that does not have ELBv2', async () => {
    endpoint = await startScriptedEndpoint(() => ({ status: 501, body: 'elbv2 is not included in your license' }));
    const balancers = new Elbv2LoadBalancer({
      region: 'ap-northeast-1',
      endpoint: endpoint.endpoint,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      maxAttempts: 1,
    });
    expect(await balancers.list('me')).toEqual([]);
    balancers.close();
  });
});
