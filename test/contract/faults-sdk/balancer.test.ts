/** F13 to F17 between the main server and an instance: a load balancer that is slow, inconsistent, uneven and lossy. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { Balancer } from '../../../orchestrator/core/cloud/load-balancer.ts';
import { HttpOfferSender } from '../../../orchestrator/core/cloud/http-offer-sender.ts';
import type { OfferResult } from '../../../orchestrator/core/cloud/offers.ts';
import { createKeyPair, exportPrivateKey } from '../../../shared/wire/signature.ts';
import { waitFor } from '../../support/processes.ts';
import { SUBNETS, VPC, uploadBundle } from '../../support/sandbox/boot.ts';
import { TEST_BUNDLE_PORT, userDataFor } from '../../support/sandbox/test-bundle.ts';
import { type SandboxCloud, SUBNET, useSandboxCloud } from './sandbox-cloud.ts';
import { TAKER, TAKER_SHA256 } from './taker-bundle.ts';

interface Target {
  id: string;
  url: string;
}

describe('the load balancer', () => {
  let cloud: SandboxCloud;
  let userData: string;
  let names = 0;
  let chunks = 0;
  useSandboxCloud((given) => (cloud = given), { allowBundles: [TAKER_SHA256] });
  beforeAll(async () => {
    const bundleUrl = await uploadBundle(cloud.clients, TAKER);
    userData = Buffer.from(userDataFor({ bundleUrl, sha256: TAKER_SHA256 }), 'base64').toString('utf8');
  });

  async function balancer(): Promise<Balancer> {
    const name = `faults-${++names}`;
    const { balancers } = cloud.adapters;
    const made = await balancers.ensure({
      name,
      vpcId: VPC,
      subnetIds: [...SUBNETS],
      securityGroupIds: ['sg-0c0a0f1ee70000001'],
      listenPort: 8_080,
      targetPort: TEST_BUNDLE_PORT,
      healthPath: '/healthz',
      tags: {},
    });
    await waitFor(() => balancers.isActive(made), { what: 'an active balancer' });
    return made;
  }

  async function target(subnetId: string = SUBNET.a): Promise<Target> {
    const request = cloud.request({ userData, subnetId });
    await cloud.launched(request);
    const { id, privateAddress } = await cloud.inState(request, 'running');
    const url = `http://${privateAddress}:${TEST_BUNDLE_PORT}`;
    await waitFor(() => fetch(`${url}/healthz`), { what: 'the program to serve' });
    return { id, url };
  }

  const healthOf = async (at: Balancer, { id }: Target) => (await cloud.adapters.balancers.health(at)).get(id);
  const inHealth = (at: Balancer, of: Target, health: string) =>
    waitFor(async () => (await healthOf(at, of)) === health, { what: `${of.id} to be ${health}` });

  async function withTargets(...targets: Target[]): Promise<Balancer> {
    const at = await balancer();
    for (const { id } of targets) expect(await cloud.adapters.balancers.register(at, id)).toBe('registered');
    for (const each of targets) await inHealth(at, each, 'healthy');
    return at;
  }

  const tell = (of: Target, what: string) => fetch(`${of.url}/${what}`, { method: 'POST' });
  const held = async (of: Target): Promise<string[]> => (await (await fetch(`${of.url}/held`)).json()) as string[];

  /** Offers `count` chunks, `atOnce` at a time, each over whatever connection is free. */
  async function offer(at: Balancer, count = 1, atOnce = 1): Promise<{ chunk: string; result: OfferResult }[]> {
    const sender = new HttpOfferSender();
    const run = { id: 'run', privateKey: exportPrivateKey(createKeyPair().privateKey) };
    const offers = Array.from({ length: count }, () => ({
      chunk: `${++chunks}-1`,
      share: 9,
      products: [{ n: 1, id: 'p' }],
    }));
    const results: { chunk: string; result: OfferResult }[] = [];
    while (offers.length > 0)
      results.push(
        ...(await Promise.all(
          offers.splice(0, atOnce).map(async (o) => ({ chunk: o.chunk, result: await sender.send(at.url, run, o) })),
        )),
      );
    await sender.close();
    return results;
  }

  it('F14: refuses an instance that does not run yet, and accepts it when it does', async () => {
    const at = await balancer();
    const request = cloud.request({ userData });
    await cloud.be({ pendingMs: 4_000 });
    const { id } = await cloud.launched(request);
    expect(await cloud.adapters.balancers.register(at, id)).toBe('not-running');
    await cloud.inState(request, 'running');
    expect(await cloud.adapters.balancers.register(at, id)).toBe('registered');
  });

  it('F8 F14: refuses an instance that ELBv2 does not know yet, and accepts it later', async () => {
    const at = await balancer();
    await cloud.be({ unknownMs: 600_000 });
    const { id } = await cloud.launched(cloud.request({ userData }));
    expect(await cloud.adapters.balancers.register(at, id)).toBe('not-running');
    await cloud.be({ unknownMs: 1 });
    await waitFor(async () => (await cloud.adapters.balancers.register(at, id)) === 'registered', {
      what: 'the registration',
    });
  });

  it('F15: delivers to unhealthy targets when there are no others: their answers are no receipts', async () => {
    const sick = await target();
    const at = await withTargets(sick);
    await tell(sick, 'well?is=false');
    await inHealth(at, sick, 'unhealthy');
    for (const [status, kind] of [
      [503, 'not-ready'],
      [409, 'refused'],
    ] as const) {
      await tell(sick, `answer?status=${status}`);
      expect((await offer(at))[0]!.result.kind).toBe(kind);
    }
    expect(await held(sick)).toEqual([]);
  });

  it.each([502, 504] as const)(
    'F16: may have delivered what it answers with %s: the holder is unknown',
    async (status) => {
      const taker = await target();
      const at = await withTargets(taker);
      await cloud.misbehave({ what: 'lost-delivery', status, path: '/products', count: 1 });
      const [lost] = await offer(at);
      expect(lost!.result).toMatchObject({ kind: 'unknown', message: expect.stringContaining(String(status)) });
      expect(await held(taker)).toEqual([lost!.chunk]);
    },
  );

  it('F17: does not share out evenly when it has several nodes: each receipt names the chunk’s holder', async () => {
    const takers = [await target(), await target()];
    const at = await withTargets(...takers);
    await cloud.be({ balancerNodes: 4 });
    // Four new connections, one to each node: each node begins with the same target.
    const results = await offer(at, 4, 4);
    const receipts = results.map(({ chunk, result }) => [chunk, result.kind === 'taken' && result.receipt.instanceId]);
    const holdings = await Promise.all(takers.map(held));
    for (const [i, { id }] of takers.entries()) {
      const named = receipts.filter(([, instance]) => instance === id).map(([chunk]) => chunk);
      expect(new Set(holdings[i])).toEqual(new Set(named));
    }
    expect(Math.max(...holdings.map((h) => h.length))).toBe(4);
  });

  it(
    'F19: gives a frozen instance up, and delivers to it again when it is thawed',
    { timeout: 90_000, tags: ['nightly'] },
    async () => {
      const frozen = await target();
      const at = await withTargets(frozen);
      await cloud.inject(frozen.id, 'freeze');
      await inHealth(at, frozen, 'unhealthy');
      await cloud.inject(frozen.id, 'thaw');
      await inHealth(at, frozen, 'healthy');
      expect((await offer(at))[0]!.result.kind).toBe('taken');
    },
  );
});
