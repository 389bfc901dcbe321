/** The object store on S3 through the SDK: AWS, the sandbox or any endpoint that speaks S3. */
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { ObjectInfo, ObjectStore } from '../ports/object-store.ts';

export interface S3Options {
  region: string;
  bucket: string;
  /** Null for AWS itself; otherwise the base URL, addressed path-style. */
  endpoint: string | null;
  /** Left out: the SDK's provider chain (environment, profile, instance role). */
  credentials?: S3ClientConfig['credentials'];
  /** From connect to the last byte of the reply; the SDK's own retries come on top. */
  timeoutMs?: number;
  /** Source address of the connections; left out: the system's choice. */
  localAddress?: string;
}

export class S3ObjectStore implements ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(options: S3Options) {
    this.#bucket = options.bucket;
    this.#client = new S3Client({
      region: options.region,
      ...(options.endpoint === null ? {} : { endpoint: options.endpoint, forcePathStyle: true }),
      ...(options.credentials ? { credentials: options.credentials } : {}),
      // A presigned URL must not demand a checksum header that curl does not send.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Hard limits: the SDK waits for ever by default, and without throwOnRequestTimeout it only logs a warning.
      // requestTimeout lasts until the head of the reply, socketTimeout cuts off a body that stops coming.
      requestHandler: {
        connectionTimeout: 5_000,
        requestTimeout: options.timeoutMs ?? 30_000,
        throwOnRequestTimeout: true,
        socketTimeout: options.timeoutMs ?? 30_000,
        ...(options.localAddress === undefined ? {} : sourceAddress(options.localAddress)),
      },
    });
  }

  async putIfAbsent(key: string, body: Uint8Array, contentType: string): Promise<'created' | 'exists'> {
    try {
      await this.#client.send(
        new PutObjectCommand({
          Bucket: this.#bucket,
          Key: key,
          Body: body,
          ContentType: contentType,
          IfNoneMatch: '*',
          ChecksumAlgorithm: 'CRC32',
        }),
      );
      return 'created';
    } catch (error) {
      if (statusOf(error) === 412) return 'exists';
      throw error;
    }
  }

  async get(key: string): Promise<Uint8Array | null> {
    try {
      const reply = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: key }));
      return reply.Body ? await reply.Body.transformToByteArray() : new Uint8Array();
    } catch (error) {
      if (statusOf(error) === 404) return null;
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
        if (object.Key !== undefined) yield { key: object.Key, sizeBytes: object.Size ?? 0 };
      }
      token = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (token);
  }

  presignGet(key: string, expiresMs: number): Promise<string> {
    return getSignedUrl(this.#client, new GetObjectCommand({ Bucket: this.#bucket, Key: key }), {
      expiresIn: Math.ceil(expiresMs / 1_000),
    });
  }

  /** Closes the kept-alive connections. */
  close(): void {
    this.#client.destroy();
  }
}

/** The SDK's own agent settings with a source address added. */
function sourceAddress(localAddress: string) {
  const agent = { keepAlive: true, maxSockets: 50, localAddress };
  return { httpAgent: agent, httpsAgent: agent };
}

function statusOf(error: unknown): number | undefined {
  const metadata = (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata;
  return metadata?.httpStatusCode;
}
