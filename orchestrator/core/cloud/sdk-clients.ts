/**
 * The SDK clients, all made the same way: explicit region and endpoint, hard time limits, few attempts. Each SDK is
 * loaded at its first use, because loading takes 70-240 ms that `plan` and `status` need not wait for.
 */
import type { EC2 } from '@aws-sdk/client-ec2';
import type { ElasticLoadBalancingV2 } from '@aws-sdk/client-elastic-load-balancing-v2';
import type { Pricing } from '@aws-sdk/client-pricing';
import type { S3, S3ClientConfig } from '@aws-sdk/client-s3';
import type { ServiceQuotas } from '@aws-sdk/client-service-quotas';
import type { SSM } from '@aws-sdk/client-ssm';
import type { STS } from '@aws-sdk/client-sts';
import { type AwsEndpoint, clientSettings } from '../../../shared/adapters/aws-endpoint.ts';
import { behindProxy, type ProxySettings } from '../../../shared/adapters/proxy.ts';
import { AppError } from '../../../shared/domain/errors.ts';
import { type AwsFailureKind, classifyAwsError, toAppError } from './aws-errors.ts';

export interface AwsOptions extends AwsEndpoint {
  /** Left out: the SDK's provider chain (environment, profile, instance role). */
  credentials?: S3ClientConfig['credentials'];
  /** HTTPS_PROXY and NO_PROXY; left out: the connections are direct. */
  proxy?: ProxySettings | undefined;
  /** The time limit per attempt, from connect to the response headers. Default 15 s. */
  timeoutMs?: number;
  /** Attempts per call, with the SDK's own pauses between them. Default 3. */
  maxAttempts?: number;
  /** Receives the endpoint's time, from the Date header of every reply of EC2 and STS. */
  onTime?: (ms: number) => void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const DEFAULT_TIMEOUT_MS = 15_000;
const DEFAULT_ATTEMPTS = 3;

function clientConfig(options: AwsOptions) {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  return {
    ...clientSettings(options),
    ...(options.credentials ? { credentials: options.credentials } : {}),
    maxAttempts: options.maxAttempts ?? DEFAULT_ATTEMPTS,
    requestHandler: {
      connectionTimeout: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
      requestTimeout: timeoutMs,
      // Without this the SDK only logs a warning at the timeout and keeps waiting.
      throwOnRequestTimeout: true,
      // requestTimeout ends at the response headers; this one ends a stalled body.
      socketTimeout: timeoutMs,
      ...behindProxy(options.proxy),
    },
  };
}

/** EC2, loaded and connected at the first call; close() drops its connections. The other services likewise. */
export const lazyEc2 = (options: AwsOptions): LazyClient<EC2> =>
  lazy(async () => {
    const client = new (await import('@aws-sdk/client-ec2')).EC2(clientConfig(options));
    measureTime(client.middlewareStack, options);
    return client;
  });

type Stack = EC2['middlewareStack'];

/** Calls `onTime` for every reply, including refusals: the SDK attaches the reply to the error it makes of it. */
function measureTime(stack: Stack, { onTime }: AwsOptions): void {
  if (!onTime) return;
  const tell = (response: unknown): void => {
    const { headers } = (response ?? {}) as { headers?: Record<string, string> };
    const ms = Date.parse(headers?.date ?? '');
    if (Number.isFinite(ms)) onTime(ms);
  };
  stack.add(
    (next) => async (args) => {
      try {
        const result = await next(args);
        tell(result.response);
        return result;
      } catch (error) {
        tell((error as { $response?: unknown } | null)?.$response);
        throw error;
      }
    },
    { step: 'deserialize', priority: 'high', name: 'endpointTime' },
  );
}

export const lazyElbv2 = (options: AwsOptions): LazyClient<ElasticLoadBalancingV2> =>
  lazy(async () => {
    const { ElasticLoadBalancingV2 } = await import('@aws-sdk/client-elastic-load-balancing-v2');
    return new ElasticLoadBalancingV2(clientConfig(options));
  });

/** The price list: served in few regions, valid for all. */
export const lazyPricing = (options: AwsOptions): LazyClient<Pricing> =>
  lazy(async () => new (await import('@aws-sdk/client-pricing')).Pricing(clientConfig(options)));

export const lazyQuotas = (options: AwsOptions): LazyClient<ServiceQuotas> =>
  lazy(async () => new (await import('@aws-sdk/client-service-quotas')).ServiceQuotas(clientConfig(options)));

/** Run Command: loaded by `orchestrator exec` only. */
export const lazySsm = (options: AwsOptions): LazyClient<SSM> =>
  lazy(async () => new (await import('@aws-sdk/client-ssm')).SSM(clientConfig(options)));

/** STS: called in the region, because an account may have the global endpoint disabled. */
export const lazySts = (options: AwsOptions): LazyClient<STS> =>
  lazy(async () => {
    const client = new (await import('@aws-sdk/client-sts')).STS(clientConfig(options));
    // The two differ only in the names of the calls.
    measureTime(client.middlewareStack as unknown as Stack, options);
    return client;
  });

/** S3: endpoints other than AWS are addressed path-style. */
export const lazyS3 = (options: AwsOptions): LazyClient<S3> =>
  lazy(async () => {
    const { S3 } = await import('@aws-sdk/client-s3');
    return new S3({ ...clientConfig(options), forcePathStyle: options.endpoint !== null });
  });

export interface LazyClient<T> {
  get(): Promise<T>;
  /** Drops the connections; the next call would load and connect again. */
  close(): void;
}

function lazy<T extends { destroy(): void }>(make: () => Promise<T>): LazyClient<T> {
  let made: Promise<T> | null = null;
  return {
    get: () => (made ??= make()),
    close() {
      // A client that could not be created has nothing to close, and its caller has received the error.
      void made?.then(
        (client) => client.destroy(),
        () => undefined,
      );
      made = null;
    },
  };
}

/** A service at one endpoint, as an adapter uses it. */
export class AwsService<T> {
  /** The endpoint; null for AWS itself. */
  readonly endpoint: string | null;
  readonly #client: LazyClient<T>;

  /** Makes no call and loads no SDK yet. */
  constructor(open: (options: AwsOptions) => LazyClient<T>, options: AwsOptions) {
    this.#client = open(options);
    this.endpoint = options.endpoint;
  }

  /** Closes the kept-alive connections. */
  close(): void {
    this.#client.close();
  }

  /** The SDK's client, for a caller that reads its errors itself. */
  client(): Promise<T> {
    return this.#client.get();
  }

  /** Throws the AppError of a refused call, which names the call. */
  async call<R>(name: string, work: (client: T) => Promise<R>): Promise<R> {
    try {
      return await work(await this.#client.get());
    } catch (error) {
      throw toAppError(error, name, this.endpoint);
    }
  }

  /** The same; null when the call fails with one of the expected kinds. */
  unless<R>(
    kinds: AwsFailureKind | readonly AwsFailureKind[],
    name: string,
    work: (client: T) => Promise<R>,
  ): Promise<R | null> {
    return this.call(name, (client) =>
      work(client).catch((error: unknown) => {
        if ([kinds].flat().includes(classifyAwsError(error).kind)) return null;
        throw error;
      }),
    );
  }
}

/** Uses a client of its own, which is closed after the work. */
export async function withClient<T, R>(lazyClient: LazyClient<T>, work: (client: T) => Promise<R>): Promise<R> {
  try {
    return await work(await lazyClient.get());
  } finally {
    lazyClient.close();
  }
}

/** One call with a client of its own; throws the AppError of a refused call. */
export async function callOnce<T, R>(
  open: (options: AwsOptions) => LazyClient<T>,
  options: AwsOptions,
  call: string,
  work: (service: T) => Promise<R>,
): Promise<R> {
  try {
    return await withClient(open(options), work);
  } catch (error) {
    throw toAppError(error, call, options.endpoint);
  }
}

/** The work, or `aws-failed` with this text at the signal: the credential chain ignores abort signals. */
export const until = <T>(signal: AbortSignal, text: string, work: Promise<T>): Promise<T> =>
  Promise.race([
    work,
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new AppError('aws-failed', text)));
    }),
  ]);

const MAX_PAGES = 100;

/** The pages of a listing; throws when there are more than any fleet has, since some endpoints always name another. */
export async function* allPages<T>(pages: AsyncIterable<T>, call: string): AsyncGenerator<T> {
  let count = 0;
  for await (const page of pages) {
    if (++count > MAX_PAGES) throw new AppError('aws-failed', `${call} did not reach its last page`);
    yield page;
  }
}

/** Everything that the pages list. */
export const allOf = async <Page, T>(
  pages: AsyncIterable<Page>,
  call: string,
  itemsOf: (page: Page) => readonly T[] | undefined,
): Promise<T[]> => (await Array.fromAsync(allPages(pages, call), (page) => itemsOf(page) ?? [])).flat();

/** Tags as pairs of key and value. */
export const tagRecord = (
  tags: readonly { Key?: string | undefined; Value?: string | undefined }[] = [],
): Record<string, string> =>
  Object.fromEntries(tags.flatMap(({ Key, Value = '' }) => (Key === undefined ? [] : [[Key, Value]])));

/** Tags in the SDK's form. */
export const tagList = (tags: Record<string, string>): { Key: string; Value: string }[] =>
  Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
