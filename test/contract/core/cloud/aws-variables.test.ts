/** Variables of the AWS SDKs in the environment, against an endpoint of the configuration. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { callOnce, lazyEc2, lazyElbv2, lazyS3, lazySts } from '../../../../orchestrator/core/cloud/sdk-clients.ts';
import { openForeignEc2 } from '../../../../sandbox/stand-in/foreign-ec2.ts';
import { S3ObjectStore } from '../../../../shared/adapters/s3-object-store.ts';

const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };

const stops: (() => unknown)[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const stop of stops.splice(0)) stop();
});

/** Answers every call with an empty list, and notes the host that it was sent to. */
async function endpoint() {
  const hosts: string[] = [];
  const server = createServer((request, response) => {
    hosts.push(request.headers.host!);
    request.resume().on('end', () => response.end('<R><reservationSet/><XResult><Members/></XResult></R>'));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  stops.push(() => server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, hosts };
}

describe('an endpoint of the configuration', () => {
  it.each<[what: string, variables: Record<string, string>]>([
    ['FIPS endpoints', { AWS_USE_FIPS_ENDPOINT: 'true' }],
    ['dual-stack endpoints', { AWS_USE_DUALSTACK_ENDPOINT: 'true' }],
    ['other endpoints', { AWS_ENDPOINT_URL: 'http://127.0.0.1:1', AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' }],
    ['another signature', { AWS_AUTH_SCHEME_PREFERENCE: 'sigv4a,httpBearerAuth' }],
    ['values the SDK refuses', { AWS_USE_FIPS_ENDPOINT: 'yes', AWS_MAX_ATTEMPTS: 'x', AWS_RETRY_MODE: 'none' }],
  ])('is called whatever the environment asks for: %s', async (_, variables) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    const { url, hosts } = await endpoint();
    const options = { region: 'eu-west-1', endpoint: url, credentials, maxAttempts: 1 };
    await callOnce(lazyEc2, options, 'DescribeInstances', (ec2) => ec2.describeInstances());
    await callOnce(lazyElbv2, options, 'DescribeLoadBalancers', (elb) => elb.describeLoadBalancers());
    await callOnce(lazySts, options, 'GetCallerIdentity', (sts) => sts.getCallerIdentity());
    await callOnce(lazyS3, options, 'ListBuckets', (s3) => s3.listBuckets());
    await (await openForeignEc2({ endpoint: url, region: 'eu-west-1', runId: 'r' })).list();
    const store = new S3ObjectStore({ ...options, bucket: 'b' });
    stops.push(() => store.close());
    await store.putIfAbsent('k', Uint8Array.of(1), 'text/plain');
    expect(hosts).toEqual(Array(6).fill(new URL(url).host));
  });
});
