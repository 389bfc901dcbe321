/** The object store on S3 through the SDK: AWS, the sandbox or any endpoint that speaks S3. */
import { Readable } from 'node:stream';
import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type PutObjectCommandInput,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { partitionOf } from '../domain/partition.ts';
import type { Clock } from '../ports/clock.ts';
import {
  MAX_OBJECT_BYTES,
  type ObjectInfo,
  type ObjectSource,
  type ObjectStore,
  objectTooLarge,
} from '../ports/object-store.ts';
import { type AwsEndpoint, clientSettings } from './aws-endpoint.ts';
import { behindProxy, type ProxySettings } from './proxy.ts';
import { systemClock } from './system-clock.ts';

/** An endpoint other than AWS is addressed path-style. */
export interface S3Options extends AwsEndpoint {
  bucket: string;
  /** Encryption of what is put: `AES256`, `aws:kms` or the ARN of a KMS key; left out: the bucket's default. */
  sse?: string;
  /** Left out: the SDK's provider chain (environment, profile, instance role). */
  credentials?: S3ClientConfig['credentials'];
  /** HTTPS_PROXY and NO_PROXY; left out: the connections are direct. */
  proxy?: ProxySettings | undefined;
  /** The time limit from connect to the last byte of the reply; the SDK's own retries are extra. */
  timeoutMs?: number;
  /** The clock for pauses between attempts; left out: the system clock. */
  clock?: Pick<Clock, 'sleep'>;
  /** Source address of the connections; left out: the system's choice. */
  localAddress?: string;
}

/** A large upload may take this long: 50 MB over a line of 1 Mbit/s. */
const UPLOAD_TIMEOUT_MS = 600_000;

/** GetCallerIdentity is a small call that usually takes some milliseconds. */
const IDENTITY_TIMEOUT_MS = 5_000;
const MAX_IDENTITY_BYTES = 100_000;

/** The pauses before the second and the third attempt. */
const UPLOAD_PAUSES_MS = [1_000, 4_000];
/** SigV4's own limit. https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-presigned-url.html */
const LONGEST_PRESIGN_S = 7 * 24 * 3_600;

export class S3ObjectStore implements ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #place: AwsEndpoint;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #encryption: ReturnType<typeof encryptionOf>;

  constructor(options: S3Options) {
    this.#bucket = options.bucket;
    this.#place = options;
    this.#encryption = encryptionOf(options.sse);
    this.#clock = options.clock ?? systemClock;
    this.#client = new S3Client({
      ...clientSettings(options),
      forcePathStyle: options.endpoint !== null,
      ...(options.credentials ? { credentials: options.credentials } : {}),
      // A presigned URL must not demand a checksum header that curl does not send.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Hard limits: the SDK waits forever by default, and without throwOnRequestTimeout it only logs a warning.
      // requestTimeout lasts until the response headers, socketTimeout ends a stalled body.
      requestHandler: {
        connectionTimeout: 5_000,
        requestTimeout: options.timeoutMs ?? 30_000,
        throwOnRequestTimeout: true,
        socketTimeout: options.timeoutMs ?? 30_000,
        ...behindProxy(options.proxy),
        ...(options.localAddress === undefined ? {} : sourceAddress(options.localAddress)),
      },
    });
  }

  putIfAbsent(key: string, body: Uint8Array, contentType: string): Promise<'created' | 'exists'> {
    return this.#put(key, { Body: body, ContentType: contentType, ChecksumAlgorithm: 'CRC32' });
  }

  async putSourceIfAbsent(key: string, source: ObjectSource, contentType: string): Promise<'created' | 'exists'> {
    for (let attempt = 0; ; attempt++) {
      // A read error aborts the call, which would otherwise wait for bytes that never come, with the error unhandled.
      const unreadable = new AbortController();
      const body = Readable.from(source.open());
      body.on('error', (error) => unreadable.abort(error));
      try {
        // Already known: S3 verifies it, and the SDK need not send a trailer, which not every endpoint supports.
        const sha256 = Buffer.from(source.sha256, 'hex').toString('base64');
        return await this.#put(
          key,
          { Body: body, ContentLength: source.sizeBytes, ContentType: contentType, ChecksumSHA256: sha256 },
          { requestTimeout: UPLOAD_TIMEOUT_MS, abortSignal: unreadable.signal },
        );
      } catch (error) {
        if (unreadable.signal.aborted) throw unreadable.signal.reason;
        const status = statusOf(error);
        const isPassing = status === undefined || status >= 500 || status === 409 || status === 429;
        const pauseMs = UPLOAD_PAUSES_MS[attempt];
        if (!isPassing || pauseMs === undefined) throw error;
        await this.#clock.sleep(pauseMs);
      } finally {
        body.destroy();
      }
    }
  }

  async #put(
    key: string,
    object: Omit<PutObjectCommandInput, 'Bucket' | 'Key'>,
    options: { requestTimeout?: number; abortSignal?: AbortSignal } = {},
  ): Promise<'created' | 'exists'> {
    try {
      await this.#client.send(
        new PutObjectCommand({ Bucket: this.#bucket, Key: key, IfNoneMatch: '*', ...this.#encryption, ...object }),
        options,
      );
      return 'created';
    } catch (error) {
      if (statusOf(error) === 412) return 'exists';
      throw error;
    }
  }

  async exists(key: string): Promise<boolean> {
    try {
      await this.#client.send(new HeadObjectCommand({ Bucket: this.#bucket, Key: key }));
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      throw error;
    }
  }

  async get(key: string, maxBytes = MAX_OBJECT_BYTES): Promise<Uint8Array | null> {
    try {
      const reply = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: key }));
      return reply.Body
        ? await readBounded(key, reply.Body as Readable, reply.ContentLength, maxBytes)
        : new Uint8Array();
    } catch (error) {
      // Without the bucket nothing is known about the object: the bucket may return with it.
      if (statusOf(error) === 404 && (error as Error).name !== 'NoSuchBucket') return null;
      throw error;
    }
  }

  async *list(prefix: string): AsyncIterable<ObjectInfo> {
    let token: string | undefined;
    do {
      const page = await this.#client.send(
        new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: prefix,
          ...(token ? { ContinuationToken: token } : {}),
        }),
      );
      for (const object of page.Contents ?? []) {
        if (object.Key === undefined) continue;
        const modified = object.LastModified ? { modifiedAtMs: object.LastModified.getTime() } : {};
        yield { key: object.Key, sizeBytes: object.Size ?? 0, ...modified };
      }
      token = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (token);
  }

  /** Valid for at most seven days, S3's limit. */
  presignGet(key: string, expiresMs: number): Promise<string> {
    return getSignedUrl(this.#client, new GetObjectCommand({ Bucket: this.#bucket, Key: key }), {
      expiresIn: Math.min(Math.max(Math.ceil(expiresMs / 1_000), 1), LONGEST_PRESIGN_S),
    });
  }

  /**
   * Who its credentials are, as `aws:userid` in a policy: asked of STS, for which no right is needed. Rejects when it
   * does not answer. One signed request of this client: the client of STS would be a tenth of the instances' program.
   */
  async userId(): Promise<string> {
    const { region, endpoint } = this.#place;
    const url = new URL(endpoint ?? `https://sts.${region}.${partitionOf(region).dnsSuffix}`);
    const body = 'Action=GetCallerIdentity&Version=2011-06-15';
    const { protocol, hostname, host, pathname, port } = url;
    const request = {
      method: 'POST',
      protocol,
      hostname,
      ...(port === '' ? {} : { port: Number(port) }),
      path: pathname,
      query: {},
      headers: { host, 'content-type': 'application/x-www-form-urlencoded', 'content-length': String(body.length) },
      body,
    };
    const { signer, requestHandler } = this.#client.config;
    const signed = await (await signer()).sign(request, { signingService: 'sts', signingRegion: region });
    const { response } = await requestHandler.handle(signed as Parameters<typeof requestHandler.handle>[0], {
      requestTimeout: IDENTITY_TIMEOUT_MS,
    });
    const text = Buffer.from(
      await readBounded('GetCallerIdentity', response.body as Readable, undefined, MAX_IDENTITY_BYTES),
    ).toString();
    const userId = /<UserId>([^<]+)<\/UserId>/.exec(text)?.[1];
    if (response.statusCode !== 200 || userId === undefined)
      throw new Error(`STS at ${url.origin} answered ${response.statusCode}: ${text.slice(0, 300)}`);
    return userId.trim();
  }

  /** Closes the kept-alive connections. */
  close(): void {
    this.#client.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** The parameters of PutObject for it. */
export function encryptionOf(
  sse: string | undefined,
): Pick<PutObjectCommandInput, 'ServerSideEncryption' | 'SSEKMSKeyId'> {
  if (sse === undefined) return {};
  if (sse === 'AES256' || sse === 'aws:kms') return { ServerSideEncryption: sse };
  return { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: sse };
}

/** All bytes of the body, unless it is, or is announced to be, larger than allowed. */
async function readBounded(
  key: string,
  body: Readable,
  saidBytes: number | undefined,
  maxBytes: number,
): Promise<Uint8Array> {
  if (saidBytes !== undefined && saidBytes > maxBytes) {
    body.destroy();
    throw objectTooLarge(key, maxBytes);
  }
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw objectTooLarge(key, maxBytes);
    pieces.push(piece);
  }
  const whole = Buffer.concat(pieces, bytes);
  return new Uint8Array(whole.buffer, whole.byteOffset, bytes);
}

/** The SDK's agent settings plus a source address. */
function sourceAddress(localAddress: string) {
  const agent = { keepAlive: true, maxSockets: 50, localAddress };
  return { httpAgent: agent, httpsAgent: agent };
}

function statusOf(error: unknown): number | undefined {
  const metadata = (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata;
  return metadata?.httpStatusCode;
}
