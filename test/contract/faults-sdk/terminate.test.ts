/** F43 and the part of F44 visible to the adapter: terminates that are throttled or not executed. */
import { describe, expect, it } from 'vitest';
import { TAG } from '../../../orchestrator/core/cloud/compute.ts';
import { type SandboxCloud, useSandboxCloud } from './sandbox-cloud.ts';

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
});
