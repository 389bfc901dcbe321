/** F1 to F9 on the launch itself: how the EC2 adapter handles lost replies, refusals and eventual consistency. */
import { describe, expect, it } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import { type SandboxCloud, SUBNET, useSandboxCloud } from './sandbox-cloud.ts';

/** Attempts of one launch() of the adapter, including the SDK's own retries. */
const SDK_ATTEMPTS = 3;

describe('a launch through the SDK', () => {
  let cloud: SandboxCloud;
  useSandboxCloud((given) => (cloud = given));
  const launch = (request: Parameters<SandboxCloud['launched']>[0]) => cloud.adapters.compute.launch(request);

  describe('whose reply is lost', () => {
    it('F1: finds its instance by the tags when every reply is lost, and gets the same one from a retry', async () => {
      const request = cloud.request();
      await cloud.misbehave({ what: 'lost-reply', action: 'RunInstances', count: SDK_ATTEMPTS });
      expect((await launch(request)).kind).toBe('unknown');
      const [instance, ...more] = await cloud.shown(request);
      expect(more).toEqual([]);
      expect((await cloud.launched(request)).id).toBe(instance!.id);
      expect(await cloud.shown(request)).toHaveLength(1);
    });

    it('F2: sends one token in all tries, those of the SDK and ours: one instance', async () => {
      const request = cloud.request();
      const before = cloud.calls('RunInstances').length;
      await cloud.misbehave({ what: 'lost-reply', action: 'RunInstances', count: 2 * SDK_ATTEMPTS });
      expect((await launch(request)).kind).toBe('unknown');
      expect((await launch(request)).kind).toBe('unknown');
      await cloud.launched(request);
      // The sandbox writes its log behind its answers.
      const sent = () => cloud.calls('RunInstances').length - before;
      await waitFor(() => sent() > 2 * SDK_ATTEMPTS, { what: 'the last call in the log' });
      expect(sent()).toBe(2 * SDK_ATTEMPTS + 1);
      expect(await cloud.shown(request)).toHaveLength(1);
    });
  });

  describe('where capacity is short', () => {
    it('F4: launches as many slots as the pool has, and the others from another zone', async () => {
      await cloud.be({ pools: [{ type: 't4g.nano', zone: 'ap-northeast-1a', left: 2 }] });
      const slots = [1, 2, 3, 4].map(() => cloud.request());
      const results = [];
      for (const slot of slots) results.push(await launch(slot));
      expect(results.map((r) => (r.kind === 'refused' ? r.cause : r.kind))).toEqual([
        'launched',
        'launched',
        'pool',
        'pool',
      ]);
      for (const slot of slots.slice(2)) {
        const elsewhere = { ...slot, subnetId: SUBNET.c, clientToken: `${slot.clientToken}-c` };
        expect(await cloud.launched(elsewhere)).toMatchObject({ zone: 'ap-northeast-1c' });
      }
    });

    it('F5: is refused only for the pool: another type works, and so does the same one when it has recovered', async () => {
      const pool = { type: 't4g.nano', zone: 'ap-northeast-1a', left: 0 };
      await cloud.be({ pools: [pool] });
      expect(await launch(cloud.request())).toMatchObject({
        kind: 'refused',
        cause: 'pool',
        message: expect.stringContaining('ap-northeast-1a'),
      });
      await cloud.launched(cloud.request({ instanceType: 't4g.small' }));
      await cloud.be({ pools: [{ ...pool, recoversAfterMs: 300 }] });
      const request = cloud.request();
      await waitFor(async () => (await launch(request)).kind === 'launched', { what: 'the pool to recover' });
    });

    it('F6: reports the vCPU quota, and succeeds when AWS has released what ended', async () => {
      const used =
        (await cloud.sandbox.instances()).filter((i) => i.state === 'running' || i.state === 'pending').length * 2;
      await cloud.be({ vcpuQuota: used + 2, vcpuReleaseMs: 600_000 });
      const first = cloud.request();
      const { id } = await cloud.launched(first);
      const second = cloud.request();
      expect(await launch(second)).toMatchObject({
        kind: 'refused',
        cause: 'quota',
        message: expect.stringContaining(`vCPU limit of ${used + 2}`),
      });
      await cloud.adapters.compute.terminate([id]);
      await cloud.inState(first, 'terminated');
      expect(await launch(second)).toMatchObject({ cause: 'quota' });
      await cloud.be({ vcpuReleaseMs: 1 });
      await waitFor(async () => (await launch(second)).kind === 'launched', { what: 'the quota to be released' });
    });
  });

  it(
    'F7: is throttled, not refused permanently, when RunInstances comes too often',
    { tags: ['nightly'] },
    async () => {
      // A burst of one, and one more each second: what 5 and 2 a second are to a large fleet.
      await cloud.be({ requestLimits: 0.2 });
      const requests = [1, 2, 3].map(() => cloud.request());
      const results = await Promise.all(requests.map(launch));
      for (const result of results)
        if (result.kind !== 'launched') expect(result).toMatchObject({ kind: 'refused', cause: 'throttled' });
      expect(results.filter((r) => r.kind !== 'launched').length).toBeGreaterThan(0);
      for (const request of requests)
        await waitFor(async () => (await launch(request)).kind === 'launched', { what: 'a token', everyMs: 500 });
      await cloud.be({ requestLimits: null });
      for (const request of requests) expect(await cloud.shown(request)).toHaveLength(1);
    },
  );

  describe('that EC2 does not know everywhere yet', () => {
    it('F8: is visible late, and never launched a second time', async () => {
      await cloud.be({ unknownMs: 600_000 });
      const request = cloud.request();
      const { id } = await cloud.launched(request);
      expect(await cloud.shown(request)).toEqual([]);
      expect((await cloud.launched(request)).id).toBe(id);
      await cloud.be({ unknownMs: 1 });
      expect(await cloud.inState(request, 'running')).toMatchObject({ id });
      expect(await cloud.shown(request)).toHaveLength(1);
    });

    it('F8: shows its tags late', async () => {
      await cloud.be({ untaggedMs: 600_000 });
      const request = cloud.request();
      await cloud.launched(request);
      expect(await cloud.shown(request)).toEqual([]);
      await cloud.be({ untaggedMs: 1 });
      expect((await cloud.inState(request, 'running')).tags).toEqual(request.tags);
    });
  });

  describe('under a token that was used before', () => {
    it('F9: is unknown with other parameters; the tags lead to the instance that the token launched', async () => {
      const request = cloud.request();
      const { id } = await cloud.launched(request);
      const other = { ...request, userData: '#!/bin/sh\n# other\n' };
      expect(await launch(other)).toMatchObject({ kind: 'unknown', tokenUsed: true });
      expect(await cloud.shown(request)).toMatchObject([{ id }]);
    });
  });

  it('F34: shows two instances behind one public address, each with its own private one', async () => {
    await cloud.be({ instancesPerAddress: 2 });
    const requests = [1, 2, 3].map(() => cloud.request());
    for (const request of requests) await cloud.launched(request);
    const [a, b, c] = await Promise.all(requests.map((request) => cloud.inState(request, 'running')));
    expect(b!.publicAddress).toBe(a!.publicAddress);
    expect(c!.publicAddress).not.toBe(a!.publicAddress);
    expect(new Set([a, b, c].map((i) => i!.privateAddress)).size).toBe(3);
  });
});
