/** Writes the body of a PUT to a file and checks every length, hash and checksum in the request. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { AwsError } from '../aws-error.ts';
import type { ChecksumName, RunningChecksum } from './checksums.ts';
import { CHECKSUMS, startChecksum } from './checksums.ts';
import { decodeAwsChunked } from './chunked-body.ts';
import type { S3Call } from './s3-call.ts';
import { header } from './s3-call.ts';

/** Maximum size of a single PUT. */
const MAX_BYTES = 5 * 1024 ** 3;

export interface ReceivedBody {
  path: string;
  sizeBytes: number;
  md5: Buffer;
  /** The verified checksums from the request. */
  checksums: Partial<Record<ChecksumName, string>>;
}

/** Writes the body to `path`; on a mismatch with the request, removes the file and throws S3's error. */
export async function receiveBody(call: S3Call, path: string): Promise<ReceivedBody> {
  try {
    return await receive(call, path);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

async function receive(call: S3Call, path: string): Promise<ReceivedBody> {
  const trailers = new Map<string, string>();
  const chunked = isAwsChunked(call);
  const source: AsyncIterable<Buffer> = chunked ? decodeAwsChunked(call.request, trailers) : call.request;
  const expectedBytes = readLength(call, chunked);
  const md5 = createHash('md5');
  const payloadHash = header(call, 'x-amz-content-sha256');
  const sha256 = payloadHash !== undefined && /^[0-9a-f]{64}$/.test(payloadHash) ? createHash('sha256') : null;
  const running = startAnnounced(call);
  let sizeBytes = 0;
  await pipeline(
    source,
    async function* measure(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        sizeBytes += chunk.length;
        if (sizeBytes > MAX_BYTES) {
          throw new AwsError('EntityTooLarge', 'Your proposed upload exceeds the maximum allowed size');
        }
        md5.update(chunk);
        sha256?.update(chunk);
        for (const checksum of running.values()) checksum.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(path, { flags: 'wx', mode: 0o600 }),
  );
  if (expectedBytes !== null && sizeBytes !== expectedBytes) {
    throw new AwsError(
      'IncompleteBody',
      'You did not provide the number of bytes specified by the Content-Length HTTP header',
    );
  }
  if (sha256 && sha256.digest('hex') !== payloadHash) {
    throw new AwsError(
      'XAmzContentSHA256Mismatch',
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    );
  }
  const digest = md5.digest();
  checkMd5(header(call, 'content-md5'), digest);
  return { path, sizeBytes, md5: digest, checksums: checkChecksums(call, trailers, running) };
}

function isAwsChunked(call: S3Call): boolean {
  return (
    header(call, 'x-amz-content-sha256')?.startsWith('STREAMING-') === true ||
    header(call, 'content-encoding')?.includes('aws-chunked') === true
  );
}

function readLength(call: S3Call, chunked: boolean): number | null {
  const text = header(call, chunked ? 'x-amz-decoded-content-length' : 'content-length');
  if (text === undefined && chunked) {
    throw new AwsError('MissingContentLength', 'You must provide the x-amz-decoded-content-length header.', 411);
  }
  return text === undefined ? null : Number(text);
}

/** Names of the checksums given in a header or, after the body, in a trailer. */
function startAnnounced(call: S3Call): Map<ChecksumName, RunningChecksum> {
  const trailers = (header(call, 'x-amz-trailer') ?? '').split(',').map((name) => name.trim().toLowerCase());
  const announced = CHECKSUMS.filter(
    (name) => header(call, `x-amz-checksum-${name}`) !== undefined || trailers.includes(`x-amz-checksum-${name}`),
  );
  return new Map(announced.map((name) => [name, startChecksum(name)]));
}

export function checkMd5(given: string | undefined, computed: Buffer): void {
  if (given === undefined) return;
  if (Buffer.from(given, 'base64').length !== 16) {
    throw new AwsError('InvalidDigest', 'The Content-MD5 you specified was invalid.');
  }
  if (given !== computed.toString('base64')) {
    throw new AwsError('BadDigest', 'The Content-MD5 you specified did not match what we received.');
  }
}

function checkChecksums(
  call: S3Call,
  trailers: ReadonlyMap<string, string>,
  running: ReadonlyMap<ChecksumName, RunningChecksum>,
): Partial<Record<ChecksumName, string>> {
  const checked: Partial<Record<ChecksumName, string>> = {};
  for (const [name, checksum] of running) {
    const given = header(call, `x-amz-checksum-${name}`) ?? trailers.get(`x-amz-checksum-${name}`);
    if (given === undefined) throw new AwsError('InvalidRequest', `The trailer x-amz-checksum-${name} did not come.`);
    const computed = checksum.digest();
    if (Buffer.from(given, 'base64').length !== Buffer.from(computed, 'base64').length) {
      throw new AwsError('InvalidRequest', `Value for x-amz-checksum-${name} header is invalid.`);
    }
    if (given !== computed) {
      throw new AwsError('BadDigest', `The ${name.toUpperCase()} you specified did not match the calculated checksum.`);
    }
    checked[name] = computed;
  }
  return checked;
}
