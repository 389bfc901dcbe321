/** What every Compute must do, run for the fake and for the SDK adapter at each available endpoint. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { CloudInstance, Compute, LaunchRequest } from '../../../../orchestrator/core/cloud/compute.ts';
import { contractCases } from './contract-case.ts';
import { eventually } from '../../../support/sandbox/clients.ts';
import { expectFault } from '../../../support/expect-fault.ts';

export interface ComputeFixture {
  compute: Compute;
  instanceType: string;
  architecture: 'x86_64' | 'arm64';
  /** Boots nothing, or nothing that matters. */
  userData: string;
  /** How long to wait for an eventual result; default: that of `eventually`. */
  patienceMs?: number;
  stop(): Promise<void>;
}

export function describeComputeContract(name: string, make: () => Promise<ComputeFixture>, endpoint = 'none'): void {
  describe(`Compute: ${name}`, () => {
    const { it, end } = contractCases('Compute', endpoint);
    // An endpoint may keep what earlier suites made.
    const salt = randomBytes(4).toString('hex');
    const owner = { key: 'crawlfleet:owner', value: `contract-${salt}` };
    let fixture: ComputeFixture;
    let compute: Compute;
    let base: Omit<LaunchRequest, 'clientToken' | 'tags'>;
    let serial = 0;

    beforeAll(async () => {
      fixture = await make();
      compute = fixture.compute;
      const [subnet] = await compute.subnets([]);
      base = {
        instanceType: fixture.instanceType,
        imageId: await compute.image(null, fixture.architecture),
        subnetId: subnet!.id,
        securityGroupIds: await compute.securityGroups([], subnet!.vpcId),
        instanceProfile: null,
        userData: fixture.userData,
      };
    });
    afterAll(async () => {
      if (compute) await compute.terminate((await compute.list(owner)).map((i) => i.id));
      await fixture?.stop();
    });

    const request = (change: Partial<LaunchRequest> = {}): LaunchRequest => {
      serial++;
      const run = `run-${salt}-${serial}`;
      const tags = {
        [owner.key]: owner.value,
        'crawlfleet:run': run,
        'crawlfleet:slot': '1',
        Name: `slot ${serial} ü`,
      };
      return { ...base, clientToken: `token-${salt}-${serial}`, tags, ...change };
    };

    const launched = async (wanted: LaunchRequest): Promise<CloudInstance> => {
      const result = await compute.launch(wanted);
      if (result.kind !== 'launched') throw new Error(`not launched: ${JSON.stringify(result)}`);
      return result.instance;
    };

    const runOf = (wanted: LaunchRequest) => ({ key: 'crawlfleet:run', value: wanted.tags['crawlfleet:run']! });

    const seen = (wanted: LaunchRequest, state: CloudInstance['state']) =>
      eventually(
        `one ${state} instance`,
        async () => {
          const found = await compute.list(runOf(wanted));
          return found.find((i) => i.state === state) ?? null;
        },
        fixture.patienceMs,
      );

    it('launches one instance with its tags on it from the start', async () => {
      const wanted = request();
      const instance = await launched(wanted);
      expect(instance.id).toMatch(/^i-[0-9a-f]+$/);
      expect(['pending', 'running']).toContain(instance.state);
      expect(instance).toMatchObject({ instanceType: wanted.instanceType, tags: wanted.tags });
      expect(instance.launchedAtMs).toBeGreaterThan(0);
      expect((await compute.list(runOf(wanted))).map((i) => i.id)).toEqual([instance.id]);
    });

    it('reaches running, with an address and a zone', async () => {
      const wanted = request();
      await launched(wanted);
      const running = await seen(wanted, 'running');
      expect(running.publicAddress).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
      expect(running.zone).toMatch(/^[a-z-]+-\d[a-z]$/);
    });

    it('returns the same instance for a repeated request, and launches no second one', async () => {
      const wanted = request();
      const first = await launched(wanted);
      const second = await launched(wanted);
      expect(second.id).toBe(first.id);
      expect(await compute.list(runOf(wanted))).toHaveLength(1);
    });

    it('reports an unknown outcome for a token that is reused for another request', async () => {
      const wanted = request();
      await launched(wanted);
      const result = await compute.launch({ ...wanted, userData: `${wanted.userData}\n# other` });
      expect(result.kind).toBe('unknown');
      expect(await compute.list(runOf(wanted))).toHaveLength(1);
    });

    it('refuses the token of a terminated instance', async () => {
      const wanted = request();
      const instance = await launched(wanted);
      await compute.terminate([instance.id]);
      await seen(wanted, 'terminated');
      expect(await compute.launch(wanted)).toMatchObject({ kind: 'refused', cause: 'spent' });
    });

    it('refuses a launch into a subnet that does not exist', async () => {
      const result = await compute.launch(request({ subnetId: 'subnet-0123456789abcdef0' }));
      expect(result).toMatchObject({ kind: 'refused', cause: 'invalid' });
    });

    it('lists only what carries the tag', async () => {
      const mine = request();
      await launched(mine);
      await launched(request());
      expect(await compute.list(runOf(mine))).toHaveLength(1);
      expect(await compute.list({ key: 'crawlfleet:run', value: 'no-such-run' })).toEqual([]);
      expect(await compute.list({ key: 'no-such-key', value: runOf(mine).value })).toEqual([]);
    });

    it('terminates each instance of a list, even if one of the IDs is unknown', async () => {
      const wanted = request();
      const instance = await launched(wanted);
      await compute.terminate(['i-0123456789abcdef0', instance.id]);
      await seen(wanted, 'terminated');
    });

    it('accepts a second terminate, and one of an empty list', async () => {
      const wanted = request();
      const instance = await launched(wanted);
      await compute.terminate([instance.id]);
      await compute.terminate([instance.id]);
      await compute.terminate([]);
      await seen(wanted, 'terminated');
    });

    it('has no console output of an unknown instance', async () => {
      expect(await compute.consoleOutput('i-0123456789abcdef0')).toBeNull();
    });

    it('lists the subnets of the default VPC, or those requested', async () => {
      const all = await compute.subnets([]);
      expect(all.length).toBeGreaterThanOrEqual(2);
      expect(new Set(all.map((s) => s.vpcId)).size).toBe(1);
      expect(new Set(all.map((s) => s.zone)).size).toBeGreaterThanOrEqual(2);
      expect(await compute.subnets([all[0]!.id])).toEqual([all[0]]);
    });

    it('names the subnet that does not exist', async () => {
      await expectFault(compute.subnets(['subnet-0123456789abcdef0']), 'aws-invalid', 'subnet-0123456789abcdef0');
    });

    it('returns the default group of a VPC, and an error for a VPC without one', async () => {
      const [subnet] = await compute.subnets([]);
      const groups = await compute.securityGroups([], subnet!.vpcId);
      expect(groups).toHaveLength(1);
      expect(await compute.securityGroups(groups, subnet!.vpcId)).toEqual(groups);
      await expect(compute.securityGroups([], 'vpc-0123456789abcdef0')).rejects.toMatchObject({ code: 'aws-invalid' });
    });

    it('names the tag that no security group of the VPC has', async () => {
      const [subnet] = await compute.subnets([]);
      await expectFault(
        compute.securityGroups(['tag:no-such-key=x'], subnet!.vpcId),
        'aws-invalid',
        'tag:no-such-key=x',
      );
    });

    it('returns an image for the architecture', async () => {
      const image = await compute.image(null, fixture.architecture);
      expect(image).toMatch(/^ami-/);
      expect(await compute.image(image, fixture.architecture)).toBe(image);
    });

    end();
  });
}
