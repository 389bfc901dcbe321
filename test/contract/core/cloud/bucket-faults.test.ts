import { afterEach, describe, expect, it } from 'vitest';
import { ensureBucket } from '../../../../orchestrator/core/cloud/bucket.ts';
import { type Answer, type ScriptedEndpoint, startScriptedEndpoint } from './scripted-endpoint.ts';

const s3Error = (status: number, code: string): Answer => ({
  status,
  body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>message of ${code}</Message></Error>`,
});
const NOT_THERE: Answer = { status: 404, body: '' };

describe('ensureBucket at an endpoint that misbehaves', () => {
  let endpoint: ScriptedEndpoint | null = null;
  afterEach(async () => {
    await endpoint?.stop();
    endpoint = null;
  });

  async function ensure(answers: Answer[], region = 'ap-northeast-1') {
    endpoint = await startScriptedEndpoint((_, n) => answers[n - 1] ?? { status: 200, body: '' });
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const options = { region, endpoint: endpoint.endpoint, credentials, timeoutMs: 2_000, maxAttempts: 1 };
    return ensureBucket({ ...options, bucket: 'shop-bucket' });
  }

  it.each([
    ['HEAD is forbidden', [{ status: 403, body: '' }]],
    ['the name is taken', [NOT_THERE, s3Error(409, 'BucketAlreadyExists')]],
  ])('reports that another account owns the bucket when %s', async (_, answers) => {
    await expect(ensure(answers)).rejects.toMatchObject({
      code: 'aws-denied',
      message: expect.stringContaining('shop-bucket belongs to another account'),
      hint: expect.stringContaining('aws.bucket'),
    });
  });

  it('reports that the bucket is in another region', async () => {
    await expect(ensure([{ status: 301, body: '' }])).rejects.toMatchObject({ code: 'aws-invalid' });
  });

  it('reports a server error as one', async () => {
    await expect(ensure([{ status: 500, body: '' }])).rejects.toMatchObject({ code: 'aws-failed' });
  });

  it.each([
    ['we made it before', [NOT_THERE, s3Error(409, 'BucketAlreadyOwnedByYou')]],
    ['another process is making it', [NOT_THERE, s3Error(409, 'OperationAborted'), { status: 200, body: '' }]],
  ])('succeeds when %s', async (_, answers) => {
    expect(await ensure(answers)).toBe('exists');
  });

  it.each([
    ['ap-northeast-1', true],
    ['us-east-1', false],
  ])('sends the region where AWS requires it: %s, %s', async (region, named) => {
    expect(await ensure([NOT_THERE], region)).toBe('created');
    expect(endpoint!.calls[1]!.toString().includes('LocationConstraint')).toBe(named);
  });
});
