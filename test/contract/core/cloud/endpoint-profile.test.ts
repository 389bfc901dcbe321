/** How the probe classifies endpoints: the sandbox, moto, one without a service, one that starts slowly, and none. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { recognizeEndpoint } from '../../../../orchestrator/core/cloud-access/recognize-endpoint.ts';
import { profileEndpoint } from '../../../../orchestrator/core/cloud/endpoint-profile.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { findMotoServer, sayMotoIsMissing, startMotoServer } from '../../../support/endpoints/moto-server.ts';
import { startSandbox } from '../../../support/sandbox/start-sandbox.ts';
import { expectFault } from '../../../support/expect-fault.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const at = (endpoint: string) => ({ region: 'ap-northeast-1', endpoint, credentials });
const MOTO = await findMotoServer();
if (MOTO === null) sayMotoIsMissing('the probe at moto');

const SUBNETS = '<DescribeSubnetsResponse><requestId>1</requestId><subnetSet/></DescribeSubnetsResponse>';
const BUCKETS = '<ListAllMyBucketsResult><Owner><ID>1</ID></Owner><Buckets/></ListAllMyBucketsResult>';

describe('the probe', () => {
  const servers: Server[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

  async function serve(handle: Handler): Promise<string> {
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => handle(request, response, body));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Answers as LocalStack without a token does. */
  const localstack: Handler = (request, response, body) => {
    const reply = (status: number, text: string): void => void response.writeHead(status).end(text);
    if (request.url === '/_localstack/health')
      return reply(200, JSON.stringify({ services: { ec2: 'available', s3: 'running' }, version: '4.14.0' }));
    if (body.includes('Action=DescribeSubnets')) return reply(200, SUBNETS);
    if (body.includes('Action='))
      return reply(501, '<ErrorResponse><Error><Code>InternalFailure</Code></Error></ErrorResponse>');
    return request.url?.startsWith('/?') === true || request.url === '/' ? reply(200, BUCKETS) : reply(404, '');
  };

  it('recognizes the sandbox, and consumes none of its configured faults', async () => {
    const sandbox = await startSandbox();
    try {
      const rules = [{ what: 'error', action: '*', code: 'RequestLimitExceeded', count: 1 }];
      await sandbox.control('POST', 'faults', rules);
      expect(await profileEndpoint(at(sandbox.endpoint))).toMatchObject({
        name: 'sandbox',
        instances: 'real',
        balancer: 'real',
      });
      expect(await sandbox.control('GET', 'faults')).toEqual(rules);
    } finally {
      await sandbox.stop();
    }
  });

  it.skipIf(MOTO === null)('recognizes moto, whose instances and load balancers are mock', async () => {
    const moto = await startMotoServer(MOTO!);
    try {
      expect(await profileEndpoint(at(moto.endpoint))).toMatchObject({
        name: 'moto',
        instances: 'mock',
        balancer: 'mock',
      });
    } finally {
      await moto.stop();
    }
  });

  it('recognizes LocalStack without a token, and that it has no ELBv2', async () => {
    expect(await profileEndpoint(at(await serve(localstack)))).toMatchObject({
      name: 'localstack',
      version: '4.14.0',
      instances: 'mock',
      balancer: 'missing',
    });
  });

  it('replaces localhost by 127.0.0.1: machines with IPv4 addresses may not reach the former', async () => {
    const endpoint = await serve(localstack);
    const target = { dryRun: true, kind: 'emulator', region: 'ap-northeast-1', bucket: 'b' } as const;
    const named = { ...target, endpoint: endpoint.replace('127.0.0.1', 'localhost') };
    expect(await recognizeEndpoint(named)).toMatchObject({ target: { endpoint }, profile: { endpoint } });
  });

  it('refuses an IPv6 address, which machines with IPv4 addresses cannot reach, before any request', async () => {
    const target = { dryRun: true, kind: 'emulator', region: 'ap-northeast-1', bucket: 'b' } as const;
    await expect(recognizeEndpoint({ ...target, endpoint: 'http://[::1]:9' })).rejects.toMatchObject({
      code: 'endpoint-refused',
      hint: expect.stringContaining('127.0.0.1'),
    });
  });

  it.each([
    ['in a real run', { dryRun: false, endpoint: 'http://127.0.0.1:9' }],
    ['without an endpoint', { dryRun: true, endpoint: null }],
  ])('sends no request %s', async (_, change) => {
    const target = { kind: 'emulator', region: 'ap-northeast-1', bucket: 'b', ...change } as const;
    expect(await recognizeEndpoint(target)).toEqual({ target, profile: null });
  });

  it('retries connections that are reset', async () => {
    let resets = 3;
    const endpoint = await serve((request, response, body) => {
      if (resets-- > 0) request.socket.destroy();
      else localstack(request, response, body);
    });
    expect(await profileEndpoint(at(endpoint))).toMatchObject({ name: 'localstack' });
  });

  it.each([
    ['that answers everything with a page of HTML', 200],
    ['that knows nothing', 404],
    ['that answers 500 with HTML', 500],
  ])('refuses an endpoint %s', async (_, status) => {
    const endpoint = await serve((_request, response) => {
      response
        .writeHead(status, { 'content-type': 'text/html' })
        .end('<!DOCTYPE html><html><body>It works!</body></html>');
    });
    await expectFault(profileEndpoint(at(endpoint)), 'aws-capability-missing', 'has no EC2');
  });

  it('reports that nothing is there, after a few tries', async () => {
    const endpoint = await serve(() => undefined);
    await new Promise((resolve) => servers.pop()!.close(resolve));
    const clock = new VirtualClock();
    const probing = profileEndpoint({ ...at(endpoint), clock });
    const over = expect(probing).rejects.toMatchObject({
      code: 'endpoint-unreachable',
      message: expect.stringContaining(endpoint),
      hint: expect.stringContaining('aws.endpoint'),
    });
    const pump = setInterval(() => void clock.advance(1_000), 10);
    await over.finally(() => clearInterval(pump));
  });
});
