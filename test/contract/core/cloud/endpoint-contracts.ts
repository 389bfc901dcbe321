/** The four contracts at one endpoint through the SDK, each with its own adapters; they remove what they make. */
import { randomBytes } from 'node:crypto';
import { DeleteBucketCommand, DeleteObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { createAwsAdapters } from '../../../../orchestrator/core/cloud/aws-clients.ts';
import { ensureBucket } from '../../../../orchestrator/core/cloud/bucket.ts';
import type { AwsOptions } from '../../../../orchestrator/core/cloud/sdk-clients.ts';
import { S3ObjectStore } from '../../../../shared/adapters/s3-object-store.ts';
import { describeComputeContract } from './describe-compute-contract.ts';
import { describeLoadBalancerContract } from './describe-load-balancer-contract.ts';
import { describeObjectStoreContract } from './describe-object-store-contract.ts';
import { describeRegionsContract } from './describe-regions-contract.ts';

export interface ContractEndpoint {
  /** For the titles. */
  title: string;
  /** As named in divergences.ts; 'none' where none is allowed. */
  name: string;
  start(): Promise<{ options: AwsOptions; stop: () => Promise<void> }>;
  /** Port for the n-th load balancer. */
  listenPort: (n: number) => number;
  /** How long to wait for an eventual result; default 20 s. */
  patienceMs?: number;
  /** Contracts that the endpoint lacks; the caller reports them. */
  without?: readonly 'LoadBalancer'[];
}

const TYPE = { instanceType: 't4g.nano', architecture: 'arm64' as const };

export function describeEndpointContracts(at: ContractEndpoint): void {
  const { title, name, listenPort } = at;
  const patience = at.patienceMs === undefined ? {} : { patienceMs: at.patienceMs };
  const start = async () => {
    const { options, stop } = await at.start();
    const adapters = createAwsAdapters(options);
    return {
      ...adapters,
      ...TYPE,
      ...patience,
      async stop() {
        adapters.close();
        await stop();
      },
    };
  };
  describeComputeContract(
    `EC2 SDK at ${title}`,
    // Powers off at once wherever a real machine boots it.
    async () => ({ ...(await start()), userData: '#!/bin/sh\nsystemctl poweroff\n' }),
    name,
  );
  if (at.without?.includes('LoadBalancer') !== true) {
    describeLoadBalancerContract(`ELBv2 SDK at ${title}`, async () => ({ ...(await start()), listenPort }), name);
  }
  describeRegionsContract(
    `EC2 and ELBv2 SDK at ${title}`,
    async () => {
      const { options, stop } = await at.start();
      const { region } = options;
      const other = region === 'us-east-1' ? 'us-west-2' : 'us-east-1';
      const regionIn = (name: string) => ({ region: name, ...createAwsAdapters({ ...options, region: name }) });
      const regions = [regionIn(region), regionIn(other)] as const;
      return {
        regions,
        ...TYPE,
        ...patience,
        listenPort,
        async stop() {
          for (const { close } of regions) close();
          await stop();
        },
      };
    },
    name,
    at.without,
  );
  describeObjectStoreContract(
    `S3 SDK at ${title}`,
    async () => {
      const { options, stop } = await at.start();
      const bucket = `crawlfleet-contract-${randomBytes(6).toString('hex')}`;
      await ensureBucket({ ...options, bucket });
      const store = new S3ObjectStore({ ...options, bucket });
      return {
        store,
        fetchUrl: async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer()),
        async stop() {
          await removeBucket(store, bucket, options);
          store.close();
          await stop();
        },
      };
    },
    name,
  );
}

async function removeBucket(store: S3ObjectStore, Bucket: string, options: AwsOptions): Promise<void> {
  const { region, endpoint, credentials } = options;
  const s3 = new S3Client({
    region,
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    ...(credentials === undefined ? {} : { credentials }),
  });
  try {
    for await (const { key } of store.list('')) await s3.send(new DeleteObjectCommand({ Bucket, Key: key }));
    await s3.send(new DeleteBucketCommand({ Bucket }));
  } finally {
    s3.destroy();
  }
}
