import { describe, expect, it } from 'vitest';
import { ensureBucket } from '../../../orchestrator/cloud/bucket.ts';
import { createAwsAdapters } from '../../../orchestrator/cloud/aws-clients.ts';
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import { startSandbox } from '../../support/sandbox/start-sandbox.ts';
import { describeComputeContract } from './describe-compute-contract.ts';
import { describeLoadBalancerContract } from './describe-load-balancer-contract.ts';
import { describeObjectStoreContract } from './describe-object-store-contract.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
const type = { instanceType: 't4g.nano', architecture: 'arm64' as const };

/** A sandbox and the adapters that speak to it. */
async function start() {
  const sandbox = await startSandbox();
  const options = { region: sandbox.region, endpoint: sandbox.endpoint, credentials };
  const adapters = createAwsAdapters(options);
  return {
    options,
    ...adapters,
    stop: async () => {
      adapters.close();
      await sandbox.stop();
    },
  };
}

describeComputeContract('EC2 SDK at the sandbox', async () => ({
  ...(await start()),
  ...type,
  userData: '#!/bin/sh\n',
}));

describeLoadBalancerContract('ELBv2 SDK at the sandbox', async () => ({
  ...(await start()),
  ...type,
  // Every balancer has an address of its own; a port above 1023 needs no rights.
  listenPort: (n) => 18_100 + n,
}));

describeObjectStoreContract('S3 SDK at the sandbox', async () => {
  const { options, stop } = await start();
  await ensureBucket({ ...options, bucket: 'contract' });
  const store = new S3ObjectStore({ ...options, bucket: 'contract' });
  return {
    store,
    fetchUrl: async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer()),
    async stop() {
      store.close();
      await stop();
    },
  };
});

describe('ensureBucket at the sandbox', () => {
  it('makes the bucket once, and says when it cannot', async () => {
    const { options, stop } = await start();
    try {
      expect(await ensureBucket({ ...options, bucket: 'my-bucket' })).toBe('created');
      expect(await ensureBucket({ ...options, bucket: 'my-bucket' })).toBe('exists');
      await expect(ensureBucket({ ...options, bucket: 'No Bucket Name' })).rejects.toMatchObject({ name: 'AppError' });
    } finally {
      await stop();
    }
  });
});
