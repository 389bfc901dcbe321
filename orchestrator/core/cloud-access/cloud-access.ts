/** Makes the adapters for the target of a run: SDK clients with the right endpoint and credentials. */
import { proxyOf } from '../../../shared/adapters/proxy.ts';
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { createAwsAdapters, createStandInAdapters } from '../cloud/aws-clients.ts';
import { DirectBalancer } from '../cloud/direct-balancer.ts';
import { keysReadAgain, readKeys } from '../cloud/credentials.ts';
import type { AwsOptions } from '../cloud/sdk-clients.ts';
import type { Compute } from '../cloud/compute.ts';
import type { LoadBalancer } from '../cloud/load-balancer.ts';
import { NO_BALANCER, type RunSettings } from '../model/run-settings.ts';

export interface CloudAccess extends Disposable {
  /** EC2 and ELBv2 in each region of the run, in the order of the configuration; never empty. */
  regions: readonly { name: string; compute: Compute; balancers: LoadBalancer }[];
  objects: ObjectStore;
}

export interface CloudOptions {
  onTime?: (ms: number) => void;
  /** Endpoint of the sandbox that provides the machines and the load balancer for `aws.endpoint`. */
  standIn?: string;
}

/** Keys for an endpoint on this machine; they are valid nowhere else. */
export const LOCAL_CREDENTIALS = { accessKeyId: 'crawlfleet-dry-run', secretAccessKey: 'crawlfleet-dry-run' };

/** The adapters; makes no call and loads no SDK before their first use. */
export function openCloud(
  aws: Pick<RunSettings['aws'], 'region' | 'endpoint' | 'bucket' | 'sse' | 'regions' | 'loadBalancer'>,
  dryRun: boolean,
  { onTime, standIn }: CloudOptions = {},
): CloudAccess {
  const regions = (aws.regions ?? [aws]).map(({ region }) => {
    const options = { ...awsOptions({ ...aws, region }, dryRun), ...(onTime ? { onTime } : {}) };
    const adapters =
      standIn === undefined
        ? createAwsAdapters(options)
        : createStandInAdapters(options, { ...options, endpoint: standIn });
    const balancers = aws.loadBalancer === NO_BALANCER ? new DirectBalancer(adapters.compute) : adapters.balancers;
    return { name: region, ...adapters, balancers };
  });
  const objects = openBucket(aws, dryRun);
  return {
    regions,
    objects,
    [Symbol.dispose]() {
      objects.close();
      for (const { close } of regions) close();
    },
  };
}

/** The proxy, which holds for the whole program, as the keys do that the SDK reads from the environment. */
const proxy = proxyOf(process.env);
/** The keys, shared by the whole program, so that its clients do not each query an identity provider. */
const sharedKeys = keysReadAgain((input) => readKeys(input, proxy));

/** Endpoint and keys for the calls: a dry run never uses the user's own keys. */
export function awsOptions(aws: Pick<RunSettings['aws'], 'region' | 'endpoint'>, dryRun: boolean): AwsOptions {
  const { region, endpoint } = aws;
  return dryRun
    ? { region, endpoint, credentials: LOCAL_CREDENTIALS }
    : { region, endpoint, credentials: sharedKeys, proxy };
}

export function openBucket(
  aws: Pick<RunSettings['aws'], 'region' | 'endpoint' | 'bucket' | 'sse'>,
  dryRun: boolean,
): S3ObjectStore {
  const { bucket, sse } = aws;
  return new S3ObjectStore({ ...awsOptions(aws, dryRun), bucket, ...(sse === undefined ? {} : { sse }) });
}
