/** What two regions of one account must keep apart, run for the SDK adapters at each available endpoint. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { type Compute, TAG } from '../../../../orchestrator/core/cloud/compute.ts';
import type { LoadBalancer } from '../../../../orchestrator/core/cloud/load-balancer.ts';
import { eventually } from '../../../support/sandbox/clients.ts';
import { contractCases } from './contract-case.ts';

export interface RegionFixture {
  region: string;
  compute: Compute;
  balancers: LoadBalancer;
}

export interface RegionsFixture {
  /** Two of one account. */
  regions: readonly [RegionFixture, RegionFixture];
  instanceType: string;
  architecture: 'x86_64' | 'arm64';
  /** Port for the n-th load balancer. */
  listenPort(n: number): number;
  /** How long to wait for an eventual result; default: that of `eventually`. */
  patienceMs?: number;
  stop(): Promise<void>;
}

/** @param without what the endpoint lacks */
export function describeRegionsContract(
  name: string,
  make: () => Promise<RegionsFixture>,
  endpoint = 'none',
  without: readonly 'LoadBalancer'[] = [],
): void {
  describe(`Regions: ${name}`, () => {
    const { it, end } = contractCases('Regions', endpoint);
    const balanced = !without.includes('LoadBalancer');
    // An endpoint may keep what earlier suites made.
    const run = { key: TAG.run, value: `run-${randomBytes(4).toString('hex')}` };
    const balancerName = `crawl-${run.value}`;
    let fixture: RegionsFixture;

    beforeAll(async () => {
      fixture = await make();
    });
    afterAll(async () => {
      // What one region refuses must not leave anything behind in the other.
      const cleaned = await Promise.allSettled(
        (fixture?.regions ?? []).flatMap(({ compute, balancers }) => [
          compute.list(run).then((found) => compute.terminate(found.map((i) => i.id))),
          ...(balanced ? [balancers.removeByName(balancerName)] : []),
        ]),
      );
      await fixture?.stop();
      expect(cleaned.filter((each) => each.status === 'rejected')).toEqual([]);
    });

    async function networkOf({ compute }: RegionFixture) {
      const subnets = await compute.subnets([]);
      const { vpcId } = subnets[0]!;
      return { vpcId, subnets, securityGroupIds: await compute.securityGroups([], vpcId) };
    }

    async function launchIn(place: RegionFixture): Promise<string> {
      const { subnets, securityGroupIds } = await networkOf(place);
      const result = await place.compute.launch({
        clientToken: `token-${run.value}`,
        instanceType: fixture.instanceType,
        imageId: await place.compute.image(null, fixture.architecture),
        subnetId: subnets[0]!.id,
        securityGroupIds,
        instanceProfile: null,
        userData: '',
        tags: { [run.key]: run.value },
      });
      if (result.kind !== 'launched') throw new Error(`not launched: ${JSON.stringify(result)}`);
      return result.instance.id;
    }

    const statesIn = async ({ compute }: RegionFixture): Promise<string[][]> =>
      (await compute.list(run)).map(({ id, state }) => [id, state]);

    it('have a network of their own, in their own zones', async () => {
      const networks = await Promise.all(fixture.regions.map(networkOf));
      for (const [i, { subnets }] of networks.entries()) {
        const { region } = fixture.regions[i]!;
        expect(subnets.map((s) => s.zone.startsWith(region))).toEqual(subnets.map(() => true));
      }
      const ids = networks.flatMap(({ vpcId, subnets }) => [vpcId, ...subnets.map((s) => s.id)]);
      expect(new Set(ids).size).toBe(ids.length);
    });

    it('list and terminate their own instances, and take one client token each', async () => {
      const [here, there] = fixture.regions;
      const ids = [await launchIn(here), await launchIn(there)];
      expect(new Set(ids).size).toBe(2);
      for (const [i, place] of fixture.regions.entries()) {
        await eventually(
          `its own running instance in ${place.region}`,
          async () => ((await statesIn(place)).flat().join() === `${ids[i]},running` ? true : null),
          fixture.patienceMs,
        );
      }
      await here.compute.terminate(ids);
      await eventually(
        'a terminated instance',
        async () => ((await statesIn(here)).flat().join() === `${ids[0]},terminated` ? true : null),
        fixture.patienceMs,
      );
      expect(await statesIn(there)).toEqual([[ids[1], 'running']]);
    });

    if (balanced) {
      it('have load balancers of one name, each of its own', async () => {
        const made = await Promise.all(
          fixture.regions.map(async (place, n) => {
            const { vpcId, subnets, securityGroupIds } = await networkOf(place);
            return place.balancers.ensure({
              name: balancerName,
              vpcId,
              subnetIds: subnets.slice(0, 2).map((s) => s.id),
              securityGroupIds,
              listenPort: fixture.listenPort(n + 1),
              targetPort: 8_080,
              healthPath: '/healthz',
              tags: { [run.key]: run.value },
            });
          }),
        );
        const [here, there] = fixture.regions;
        expect(made[0]).not.toEqual(made[1]);
        await here.balancers.removeByName(balancerName);
        expect(await there.balancers.health(made[1]!)).toEqual(new Map());
      });
    }

    end();
  });
}
