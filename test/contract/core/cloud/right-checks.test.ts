/** The ARNs with which rights are asked for, as they are sent. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { checkElbRights } from '../../../../orchestrator/core/cloud/right-checks.ts';

it.each([
  ['ap-northeast-1', 'aws'],
  ['cn-north-1', 'aws-cn'],
  ['us-gov-west-1', 'aws-us-gov'],
])('are well formed in %s', async (region, partition) => {
  const bodies: string[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    bodies.push(await text(request));
    response.writeHead(400).end();
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    await checkElbRights({ region, endpoint, credentials }, '123456789012');
  } finally {
    server.close();
  }
  const sent = bodies.flatMap((body) => [...new URLSearchParams(body).values()].filter((value) => /arn/i.test(value)));
  const place = `arn:${partition}:elasticloadbalancing:${region}:123456789012`;
  expect([...new Set(sent)].toSorted()).toEqual([
    `${place}:loadbalancer/app/crawlfleet-none/0000000000000000`,
    `${place}:targetgroup/crawlfleet-none/0000000000000000`,
  ]);
  // Listeners, tags, target health.
  expect(sent).toHaveLength(3);
});
