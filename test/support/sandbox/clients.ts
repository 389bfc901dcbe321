/** AWS's own SDK clients, pointed at a sandbox. */
import { EC2 } from '@aws-sdk/client-ec2';
import { ElasticLoadBalancingV2 } from '@aws-sdk/client-elastic-load-balancing-v2';
import { S3 } from '@aws-sdk/client-s3';
import type { TestSandbox } from './start-sandbox.ts';

export interface SandboxClients {
  ec2: EC2;
  elb: ElasticLoadBalancingV2;
  s3: S3;
  destroy(): void;
}

export function clientsFor(sandbox: Pick<TestSandbox, 'endpoint' | 'region'>): SandboxClients {
  const base = {
    endpoint: sandbox.endpoint,
    region: sandbox.region,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
  };
  const ec2 = new EC2(base);
  const elb = new ElasticLoadBalancingV2(base);
  const s3 = new S3({ ...base, forcePathStyle: true });
  return {
    ec2,
    elb,
    s3,
    destroy() {
      for (const client of [ec2, elb, s3]) client.destroy();
    },
  };
}

/** Resolves with the first value that is not null; an error ends it, and so does the limit, with what it waited for. */
export async function eventually<T>(what: string, look: () => Promise<T | null>, limitMs = 20_000): Promise<T> {
  const until = performance.now() + limitMs;
  for (;;) {
    const value = await look();
    if (value !== null) return value;
    if (performance.now() > until) throw new Error(`waited ${limitMs / 1_000} s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** The error of the AWS client for a refused call. Throws when the call succeeds. */
export async function refusal(call: Promise<unknown>): Promise<{ code: string; status: number | undefined }> {
  try {
    await call;
  } catch (error) {
    const { name, $metadata } = error as { name: string; $metadata?: { httpStatusCode?: number } };
    return { code: name, status: $metadata?.httpStatusCode };
  }
  throw new Error('the call was not refused');
}
