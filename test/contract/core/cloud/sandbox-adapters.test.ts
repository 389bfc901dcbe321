import { describe, expect, it } from 'vitest';
import { ensureBucket } from '../../../../orchestrator/core/cloud/bucket.ts';
import { startSandbox } from '../../../support/sandbox/start-sandbox.ts';
import { describeEndpointContracts } from './endpoint-contracts.ts';

const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

/** A sandbox of its own. */
async function start() {
  const sandbox = await startSandbox();
  const { region, endpoint } = sandbox;
  return { options: { region, endpoint, credentials }, stop: async () => void (await sandbox.stop()) };
}

describeEndpointContracts({
  title: 'the sandbox',
  name: 'none',
  start,
  // Every load balancer has an address of its own; a port above 1023 needs no privileges.
  listenPort: (n) => 18_100 + n,
});

describe('ensureBucket at the sandbox', () => {
  it('makes the bucket once, and reports when it cannot', async () => {
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
