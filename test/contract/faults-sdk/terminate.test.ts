/** F43 and the part of F44 visible to the adapter: terminates that are throttled, lost, forbidden or not executed. */
import { describe, expect, it } from 'vitest';
import { TAG } from '../../../orchestrator/cloud/compute.ts';
import type { SandboxCloud } from './sandbox-cloud.ts';
import { SUBNET, useSandboxCloud } from './sandbox-cloud.ts';

describe('a terminate through the SDK', () => {
  let cloud: SandboxCloud;
  useSandboxCloud((given) => (cloud = given));

  async function running(change: Parameters<SandboxCloud['request']>[0] = {}) {
    const request = cloud.request(change);
    await cloud.launched(request);
    return { request, id: (await cloud.inState(request, 'running')).id };
  }
  const terminate = (...ids: string[]) => cloud.adapters.compute.terminate(ids);
  const throttle = (count: number) =>
    cloud.misbehave({ what: 'error', action: 'TerminateInstances', code: 'RequestLimitExceeded', count });

  it('F43: gets through a short throttling on its own', async () => {
    const { request, id } = await running();
    await throttle(2);
    await terminate(id);
    await cloud.inState(request, 'terminated');
  });

  it('F7 F43: reports the throttling, so that the caller retries, and then works', async () => {
    const { request, id } = await running();
    await throttle(3);
    await expect(terminate(id)).rejects.toMatchObject({ code: 'aws-throttled' });
    expect(await cloud.shown(request)).toMatchObject([{ state: 'running' }]);
    await terminate(id);
    await cloud.inState(request, 'terminated');
  });

  it('F43: accepts an instance that EC2 does not know, and ends the others of the list', async () => {
    const { request, id } = await running();
    await terminate('i-0123456789abcdef0', id, 'i-00000000000000000');
    await cloud.inState(request, 'terminated');
  });

  it('F43: ends the others when one is protected, and names that one', async () => {
    const first = await running();
    const guarded = await running();
    const last = await running({ subnetId: SUBNET.c });
    await cloud.befall(guarded.id, 'protect');
    await expect(terminate(first.id, guarded.id, last.id)).rejects.toMatchObject({
      code: 'aws-invalid',
      message: expect.stringContaining(guarded.id),
    });
    for (const { request } of [first, last]) await cloud.inState(request, 'terminated');
    expect(await cloud.shown(guarded.request)).toMatchObject([{ state: 'running' }]);
    await cloud.befall(guarded.id, 'unprotect');
    await terminate(guarded.id);
    await cloud.inState(guarded.request, 'terminated');
  });

  it('F43: is done when the reply is lost', async () => {
    const { request, id } = await running();
    await cloud.misbehave({ what: 'lost-reply', action: 'TerminateInstances', count: 1 });
    await terminate(id);
    await cloud.inState(request, 'terminated');
  });

  it('F43: is accepted and not executed: only polling EC2 reveals it, and a second one works', async () => {
    const { request, id } = await running();
    await cloud.misbehave({ what: 'ignored-terminate', count: 1 });
    await terminate(id);
    expect(await cloud.shown(request)).toMatchObject([{ id, state: 'running' }]);
    await terminate(id);
    await cloud.inState(request, 'terminated');
  });

  it('F44: never lists instances of another owner, or without tags', async () => {
    const mine = await running();
    for (const tags of [{ [TAG.owner]: 'somebody-else' }, {}, { [TAG.owner]: 'test-2' }])
      await cloud.launched(cloud.request({ tags }));
    const found = await cloud.adapters.compute.list({ key: TAG.owner, value: 'test' });
    expect(found.filter((i) => i.state === 'running').map((i) => i.id)).toContain(mine.id);
    for (const { tags } of found) expect(tags[TAG.owner]).toBe('test');
  });

  it('shows what was terminated for a while, and then no longer', async () => {
    await cloud.be({ terminatedShownMs: 3_000 });
    const { request, id } = await running();
    await terminate(id);
    await cloud.inState(request, 'terminated');
    await expect.poll(() => cloud.shown(request), { timeout: 20_000 }).toEqual([]);
    await terminate(id);
  });
});
