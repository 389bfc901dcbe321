/** The adapter in place of a load balancer finds the health of instances over real HTTP. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CloudInstance, TAG } from '../../../../orchestrator/core/cloud/compute.ts';
import { DirectBalancer } from '../../../../orchestrator/core/cloud/direct-balancer.ts';
import { closeServer } from '../../../../shared/adapters/http/listening.ts';
import { API_PORT, HEALTH_PATH } from '../../../../shared/wire/instance-api.ts';
import { aCloudInstance, anInstance } from '../../../unit/core/builders.ts';

/** An address for each instance, as in the sandbox: every instance has the same port. */
const STATUSES = { '127.91.17.1': 200, '127.91.17.2': 503 };
const servers: Server[] = [];

beforeAll(async () => {
  for (const [address, status] of Object.entries(STATUSES)) {
    const server = createServer(({ url }, response) => response.writeHead(url === HEALTH_PATH ? status : 404).end());
    servers.push(server.listen(API_PORT, address));
    await once(server, 'listening');
  }
});
afterAll(() => Promise.all(servers.map((server) => closeServer(server))));

it('shows who answers 200, and says why others are unhealthy', async () => {
  const addresses = [...Object.keys(STATUSES), '127.91.17.3', null];
  const instances = addresses.map((privateAddress, slot) =>
    aCloudInstance(anInstance(slot, { instanceId: `i-${slot}` }), { privateAddress }),
  );
  const asked: unknown[] = [];
  const list = (filter: unknown): Promise<CloudInstance[]> => {
    asked.push(filter);
    return Promise.resolve([...instances, aCloudInstance(anInstance(9), { id: 'i-9', state: 'terminated' })]);
  };
  const balancers = new DirectBalancer({ list });
  const balancer = await balancers.ensure({ tags: { [TAG.run]: 'the-run' } });
  expect(await balancers.health(balancer)).toEqual(
    new Map([
      ['i-0', 'healthy'],
      ['i-1', 'unhealthy'],
      ['i-2', 'unhealthy'],
    ]),
  );
  expect(asked).toEqual([{ key: TAG.run, value: 'the-run' }]);
  expect(await balancers.whyUnhealthy(balancer, 'i-0')).toBeNull();
  expect(await balancers.whyUnhealthy(balancer, 'i-1')).toContain('answers 503');
  expect(await balancers.whyUnhealthy(balancer, 'i-2')).toContain('no answer');
});
