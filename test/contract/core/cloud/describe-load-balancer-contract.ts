/** What every LoadBalancer must do, run for the fake and for the SDK adapter at each available endpoint. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import type { Compute } from '../../../../orchestrator/core/cloud/compute.ts';
import type { Balancer, BalancerRequest, LoadBalancer } from '../../../../orchestrator/core/cloud/load-balancer.ts';
import { contractCases } from './contract-case.ts';
import { eventually } from '../../../support/sandbox/clients.ts';
import { expectFault } from '../../../support/expect-fault.ts';

export interface LoadBalancerFixture {
  balancers: LoadBalancer;
  /** Source of the targets. */
  compute: Compute;
  instanceType: string;
  architecture: 'x86_64' | 'arm64';
  /** Port for the n-th load balancer of this suite. */
  listenPort(n: number): number;
  /** How long to wait for an eventual result; default: that of `eventually`. */
  patienceMs?: number;
  stop(): Promise<void>;
}

export function describeLoadBalancerContract(
  name: string,
  make: () => Promise<LoadBalancerFixture>,
  endpoint = 'none',
): void {
  describe(`LoadBalancer: ${name}`, () => {
    const { it, end } = contractCases('LoadBalancer', endpoint);
    // An endpoint may keep what earlier suites made.
    const salt = randomBytes(4).toString('hex');
    let fixture: LoadBalancerFixture;
    let balancers: LoadBalancer;
    let base: Omit<BalancerRequest, 'name' | 'listenPort'>;
    let request: BalancerRequest;
    let serial = 0;
    let runningId: string;

    beforeAll(async () => {
      fixture = await make();
      balancers = fixture.balancers;
      const subnets = await fixture.compute.subnets([]);
      const securityGroupIds = await fixture.compute.securityGroups([], subnets[0]!.vpcId);
      base = {
        vpcId: subnets[0]!.vpcId,
        subnetIds: subnets.slice(0, 2).map((s) => s.id),
        securityGroupIds,
        targetPort: 8_080,
        healthPath: '/healthz',
        tags: { 'crawlfleet:run': 'run-1' },
      };
      const launch = await fixture.compute.launch({
        clientToken: `balancer-target-${salt}`,
        instanceType: fixture.instanceType,
        imageId: await fixture.compute.image(null, fixture.architecture),
        subnetId: subnets[0]!.id,
        securityGroupIds,
        instanceProfile: null,
        userData: '',
        tags: { 'crawlfleet:run': `balancer-target-${salt}` },
      });
      if (launch.kind !== 'launched') throw new Error(`not launched: ${JSON.stringify(launch)}`);
      runningId = launch.instance.id;
      await eventually(
        'a running target',
        async () => {
          const found = await fixture.compute.list({ key: 'crawlfleet:run', value: `balancer-target-${salt}` });
          return found.find((i) => i.state === 'running') ?? null;
        },
        fixture.patienceMs,
      );
    });
    afterAll(async () => {
      // Only what a failed case has left.
      for (let n = 1; n <= serial; n++) {
        for (const left of [`crawl-${salt}-${n}`, `crawl-${salt}-${n}-theirs`]) await balancers.removeByName(left);
      }
      if (runningId) await fixture.compute.terminate([runningId]);
      await fixture?.stop();
    });
    beforeEach(() => {
      serial++;
      request = { ...base, name: `crawl-${salt}-${serial}`, listenPort: fixture.listenPort(serial) };
    });

    const active = (balancer: Balancer) =>
      eventually(
        'an active balancer',
        async () => ((await balancers.isActive(balancer)) ? true : null),
        fixture.patienceMs,
      );

    it('makes a load balancer with an address, which becomes active', async () => {
      const balancer = await balancers.ensure(request);
      expect(balancer.url).toMatch(/^http:\/\/[^/]+[^/]$/);
      await active(balancer);
      await balancers.remove(balancer);
    });

    it('finds the load balancer it made before instead of making a second one', async () => {
      const balancer = await balancers.ensure(request);
      expect(await balancers.ensure(request)).toEqual(balancer);
      await balancers.remove(balancer);
    });

    it('registers a running instance, again without harm, and reports its health', async () => {
      const balancer = await balancers.ensure(request);
      await active(balancer);
      expect(await balancers.health(balancer)).toEqual(new Map());
      expect(await balancers.register(balancer, runningId)).toBe('registered');
      expect(await balancers.register(balancer, runningId)).toBe('registered');
      expect([...(await balancers.health(balancer)).keys()]).toEqual([runningId]);
      await balancers.remove(balancer);
    });

    it('reports not-running for an instance that cannot be a target', async () => {
      const balancer = await balancers.ensure(request);
      expect(await balancers.register(balancer, 'i-0123456789abcdef0')).toBe('not-running');
      await balancers.remove(balancer);
    });

    it('deregisters a target, even one that is not registered', async () => {
      const balancer = await balancers.ensure(request);
      await balancers.register(balancer, runningId);
      await balancers.deregister(balancer, runningId);
      await balancers.deregister(balancer, runningId);
      await balancers.deregister(balancer, 'i-0123456789abcdef0');
      await eventually('no target, or one that drains', async () => {
        const state = (await balancers.health(balancer)).get(runningId);
        return state === undefined || state === 'draining' ? true : null;
      });
      await balancers.remove(balancer);
    });

    it('removes everything, and accepts a second remove', async () => {
      const balancer = await balancers.ensure(request);
      await balancers.register(balancer, runningId);
      await balancers.remove(balancer);
      await balancers.remove(balancer);
      expect(await balancers.isActive(balancer)).toBe(false);
      await expect(balancers.health(balancer)).rejects.toMatchObject({ code: 'aws-not-found' });
    });

    it('lists what carries an owner’s tag, grouped under its name, and nothing of other owners', async () => {
      const tags = { 'crawlfleet:owner': `me-${salt}-${serial}`, 'crawlfleet:run': 'run-1' };
      const mine = await balancers.ensure({ ...request, tags });
      const theirs = await balancers.ensure({
        ...base,
        name: `crawl-${salt}-${serial}-theirs`,
        listenPort: fixture.listenPort(100 + serial),
        tags: { ...tags, 'crawlfleet:owner': `other-${salt}-${serial}` },
      });
      const found = await balancers.list(`me-${salt}-${serial}`);
      expect(found).toEqual([
        {
          name: request.name,
          loadBalancerArn: mine.loadBalancerArn,
          targetGroupArn: mine.targetGroupArn,
          createdAtMs: expect.any(Number),
          tags,
        },
      ]);
      expect(Math.abs(Date.now() - found[0]!.createdAtMs!)).toBeLessThan(120_000);
      await balancers.removeOwned(found[0]!);
      await balancers.removeOwned(found[0]!);
      expect(await balancers.list(`me-${salt}-${serial}`)).toEqual([]);
      expect(await balancers.list(`other-${salt}-${serial}`)).toHaveLength(1);
      await balancers.remove(theirs);
    });

    it('finds a load balancer by name and by ARN, and reports when there is none', async () => {
      const users = await balancers.ensure(request);
      const found = await balancers.find(request.name);
      expect(found).toMatchObject({ loadBalancerArn: users.loadBalancerArn, type: 'application', vpcId: base.vpcId });
      expect(found!.zones.length).toBeGreaterThanOrEqual(2);
      expect(await balancers.find(users.loadBalancerArn)).toEqual(found);
      expect(await balancers.find('no-such-balancer')).toBeNull();
      await balancers.remove(users);
    });

    it('adds its own listener to a load balancer of the user’s, and removes no more than that', async () => {
      const users = await balancers.ensure(request);
      const tags = { 'crawlfleet:owner': `me-${serial}`, 'crawlfleet:run': 'run-1' };
      const joined = (name: string) => balancers.ensure({ ...request, name, existing: request.name, tags });
      const [a, b] = [await joined(`crawl-${serial}-a`), await joined(`crawl-${serial}-b`)];
      expect(a).toMatchObject({ shared: true, loadBalancerArn: users.loadBalancerArn });
      expect(new Set([users.url, a.url, b.url]).size).toBe(3);
      expect(await joined(`crawl-${serial}-a`)).toEqual(a);
      await active(a);
      expect(await balancers.register(a, runningId)).toBe('registered');
      expect([...(await balancers.health(a)).keys()]).toEqual([runningId]);
      expect(await balancers.health(b)).toEqual(new Map());
      await balancers.remove(a);
      await balancers.remove(a);
      await expect(balancers.health(a)).rejects.toMatchObject({ code: 'aws-not-found' });
      const [left, ...others] = await balancers.list(`me-${serial}`);
      expect(left).toMatchObject({
        name: `crawl-${serial}-b`,
        loadBalancerArn: null,
        targetGroupArn: b.targetGroupArn,
      });
      expect(others).toEqual([]);
      await balancers.removeOwned(left!);
      expect(await balancers.list(`me-${serial}`)).toEqual([]);
      const again = await joined(`crawl-${serial}-c`);
      await balancers.removeByName(`crawl-${serial}-c`);
      await expect(balancers.health(again)).rejects.toMatchObject({ code: 'aws-not-found' });
      expect(await balancers.isActive(users)).toBe(true);
      expect(await balancers.find(request.name)).not.toBeNull();
      await balancers.remove(users);
    });

    it('reports that the load balancer to join does not exist', async () => {
      await expectFault(
        balancers.ensure({ ...request, existing: 'no-such-balancer' }),
        'aws-not-found',
        'no-such-balancer',
      );
      await balancers.removeByName(request.name);
    });

    it('removes by name what a dead run left, and accepts a name that nothing has', async () => {
      const balancer = await balancers.ensure(request);
      await balancers.removeByName(request.name);
      expect(await balancers.isActive(balancer)).toBe(false);
      await balancers.removeByName(request.name);
      const again = await balancers.ensure(request);
      expect(await balancers.health(again)).toEqual(new Map());
      await balancers.remove(again);
    });

    end();
  });
}
