/** What every LoadBalancer must do, run for the fake and for the SDK adapter against the sandbox. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Compute } from '../../../orchestrator/cloud/compute.ts';
import type { Balancer, BalancerRequest, LoadBalancer } from '../../../orchestrator/cloud/load-balancer.ts';
import { eventually } from './eventually.ts';

export interface LoadBalancerFixture {
  balancers: LoadBalancer;
  /** Where the targets come from. */
  compute: Compute;
  instanceType: string;
  architecture: 'x86_64' | 'arm64';
  /** Ports for the n-th balancer of this suite. */
  listenPort(n: number): number;
  stop(): Promise<void>;
}

export function describeLoadBalancerContract(name: string, make: () => Promise<LoadBalancerFixture>): void {
  describe(`LoadBalancer: ${name}`, () => {
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
        clientToken: 'balancer-target',
        instanceType: fixture.instanceType,
        imageId: await fixture.compute.image(null, fixture.architecture),
        subnetId: subnets[0]!.id,
        securityGroupIds,
        instanceProfile: null,
        userData: '',
        tags: { 'crawlfleet:run': 'balancer-target' },
      });
      if (launch.kind !== 'launched') throw new Error(`not launched: ${JSON.stringify(launch)}`);
      runningId = launch.instance.id;
      await eventually('a running target', async () => {
        const found = await fixture.compute.list({ key: 'crawlfleet:run', value: 'balancer-target' });
        return found.find((i) => i.state === 'running') ?? null;
      });
    });
    afterAll(() => fixture?.stop());
    beforeEach(() => {
      serial++;
      request = { ...base, name: `crawl-${serial}`, listenPort: fixture.listenPort(serial) };
    });

    const active = (balancer: Balancer) =>
      eventually('an active balancer', async () => ((await balancers.isActive(balancer)) ? true : null));

    it('makes a balancer with an address, which becomes active', async () => {
      const balancer = await balancers.ensure(request);
      expect(balancer.url).toMatch(/^http:\/\/[^/]+[^/]$/);
      await active(balancer);
      await balancers.remove(balancer);
    });

    it('finds what it made before instead of making it twice', async () => {
      const balancer = await balancers.ensure(request);
      expect(await balancers.ensure(request)).toEqual(balancer);
      await balancers.remove(balancer);
    });

    it('registers a running instance, again without harm, and shows its health', async () => {
      const balancer = await balancers.ensure(request);
      await active(balancer);
      expect(await balancers.health(balancer)).toEqual(new Map());
      expect(await balancers.register(balancer, runningId)).toBe('registered');
      expect(await balancers.register(balancer, runningId)).toBe('registered');
      expect([...(await balancers.health(balancer)).keys()]).toEqual([runningId]);
      await balancers.remove(balancer);
    });

    it('says not-running for an instance that cannot be a target', async () => {
      const balancer = await balancers.ensure(request);
      expect(await balancers.register(balancer, 'i-0123456789abcdef0')).toBe('not-running');
      await balancers.remove(balancer);
    });

    it('deregisters a target, also one that is not there', async () => {
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

    it('removes everything, and takes a second remove', async () => {
      const balancer = await balancers.ensure(request);
      await balancers.register(balancer, runningId);
      await balancers.remove(balancer);
      await balancers.remove(balancer);
      expect(await balancers.isActive(balancer)).toBe(false);
      await expect(balancers.health(balancer)).rejects.toMatchObject({ code: 'aws-not-found' });
    });

    it('removes by name what a dead run left, and takes a name that nothing has', async () => {
      const balancer = await balancers.ensure(request);
      await balancers.removeByName(request.name);
      expect(await balancers.isActive(balancer)).toBe(false);
      await balancers.removeByName(request.name);
      const again = await balancers.ensure(request);
      expect(await balancers.health(again)).toEqual(new Map());
      await balancers.remove(again);
    });
  });
}
