/** Writes the body of a PUT to a file and checks every length, hash and checksum in the request. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { AwsError } from '../aws-error.ts';
import { type ChecksumName, CHECKSUMS, type RunningChecksum, startChecksum } from './checksums.ts';
import type { ReceivedBody } from './multipart-uploads.ts';
import { header, type S3Call } from './s3-call.ts';

/** Maximum size of a single PUT. */
const MAX_BYTES = 5 * 1024 ** 3;

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
        if (sizeBytes > MAX_BYTES)
          throw new AwsError('EntityTooLarge', 'Your proposed upload exceeds the maximum allowed size');
        md5.update(chunk);
        sha256?.update(chunk);
        for (const checksum of running.values()) checksum.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(path, { flags: 'wx', mode: 0o600 }),
  );
  if (expectedBytes !== null && sizeBytes !== expectedBytes)
    throw new AwsError(
      'IncompleteBody',
      'You did not provide the number of bytes specified by the Content-Length HTTP header',
    );
  if (sha256 && sha256.digest('hex') !== payloadHash)
    throw new AwsError(
      'XAmzContentSHA256Mismatch',
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    );
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
  if (text === undefined && chunked)
    throw new AwsError('MissingContentLength', 'You must provide the x-amz-decoded-content-length header.', 411);
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
  if (Buffer.from(given, 'base64').length !== 16)
    throw new AwsError('InvalidDigest', 'The Content-MD5 you specified was invalid.');
  if (given !== computed.toString('base64'))
    throw new AwsError('BadDigest', 'The Content-MD5 you specified did not match what we received.');
}

function checkChecksums(
  call: S3Call,
  trailers: ReadonlyMap<string, string>,
  running: ReadonlyMap<ChecksumName, RunningChecksum>,
): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [name, checksum] of running) {
    const field = `x-amz-checksum-${name}`;
    const given = header(call, field) ?? trailers.get(field);
    if (given === undefined) throw new AwsError('InvalidRequest', `The trailer ${field} did not come.`);
    const computed = checksum.digest();
    if (Buffer.from(given, 'base64').length !== Buffer.from(computed, 'base64').length)
      throw new AwsError('InvalidRequest', `Value for ${field} header is invalid.`);
    if (given !== computed)
      throw new AwsError('BadDigest', `The ${name.toUpperCase()} you specified did not match the calculated checksum.`);
    checked[field] = computed;
  }
  return checked;
}

const MAX_LINE_BYTES = 16_384;

/** Yields the data; fills `trailers` (lower-case names) before the last yield ends. */
export async function* decodeAwsChunked(
  body: AsyncIterable<Buffer>,
  trailers: Map<string, string>,
): AsyncGenerator<Buffer> {
  let buffer: Buffer = Buffer.alloc(0);
  let left = 0;
  let phase = 'size' as 'size' | 'data' | 'data-end' | 'trailer';
  for await (const piece of body) {
    buffer = buffer.length === 0 ? piece : Buffer.concat([buffer, piece]);
    for (;;) {
      if (phase === 'data') {
        if (buffer.length === 0) break;
        const data = buffer.subarray(0, left);
        buffer = buffer.subarray(data.length);
        left -= data.length;
        yield data;
        if (left === 0) phase = 'data-end';
        continue;
      }
      const end = buffer.indexOf('\r\n');
      if (end < 0) {
        if (buffer.length > MAX_LINE_BYTES) throw malformed();
        break;
      }
      const line = buffer.toString('utf8', 0, end);
      buffer = buffer.subarray(end + 2);
      if (phase === 'data-end') {
        if (line !== '') throw malformed();
        phase = 'size';
      } else if (phase === 'size') {
        const size = /^([0-9a-fA-F]{1,8})(?:;.*)?$/.exec(line)?.[1];
        if (size === undefined) throw malformed();
        left = Number.parseInt(size, 16);
        phase = left === 0 ? 'trailer' : 'data';
      } else if (line !== '') {
        const colon = line.indexOf(':');
        if (colon < 1) throw malformed();
        trailers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
      }
    }
  }
  if (phase !== 'trailer') throw new AwsError('IncompleteBody', 'The request body terminated unexpectedly');
}

function malformed(): AwsError {
  return new AwsError('InvalidRequest', 'The body is not in the aws-chunked form its headers announce.');
}
