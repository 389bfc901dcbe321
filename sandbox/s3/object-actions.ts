/** PutObject, GetObject, HeadObject, DeleteObject, DeleteObjects. */
import { createReadStream, closeSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { AwsError } from '../aws-error.ts';
import { readBody } from '../http-body.ts';
import { childText, childrenNamed, parseXml } from '../xml.ts';
import { type Condition, preconditionFailed } from './bucket-store.ts';
import type { ObjectRecord } from './object-file.ts';
import { checkMd5, receiveBody } from './receive-body.ts';
import { emptyReply, header, type S3Call, type S3Context, type S3Reply, xmlReply } from './s3-call.ts';

const MAX_KEY_BYTES = 1_024;
/** Headers stored and returned with the object. */
const KEPT_HEADERS = ['content-type', 'cache-control', 'content-disposition', 'content-language', 'expires'];
const MAX_DELETE_BODY_BYTES = 2_000_000;

export async function putObject(call: S3Call, context: S3Context): Promise<S3Reply> {
  const bucket = context.buckets.need(call.bucket);
  checkKey(call.key);
  refuseCopy(call);
  const condition = readCondition(call);
  const body = await receiveBody(call, context.buckets.scratchPath());
  const record: ObjectRecord = {
    key: call.key,
    sizeBytes: body.sizeBytes,
    etag: body.md5.toString('hex'),
    modifiedMs: context.clock.now(),
    headers: keptHeaders(call),
    checksums: body.checksums,
  };
  // The bucket may have been deleted while the body was received.
  if (context.buckets.find(call.bucket) !== bucket) context.buckets.need(call.bucket);
  bucket.commit(body.path, record, condition);
  return emptyReply(200, { etag: `"${record.etag}"`, ...record.checksums });
}

/** S3's copy is not needed here. */
export function refuseCopy(call: S3Call): void {
  if (header(call, 'x-amz-copy-source') !== undefined)
    throw new AwsError('NotImplemented', 'The sandbox does not copy objects.', 501);
}

export function checkKey(key: string): void {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw new AwsError('KeyTooLongError', 'Your key is too long');
}

export function readCondition(call: S3Call): Condition {
  const ifNoneMatch = header(call, 'if-none-match');
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch.trim() === '*') return { kind: 'if-absent' };
    throw new AwsError('NotImplemented', 'A header you provided implies functionality that is not implemented', 501);
  }
  const ifMatch = header(call, 'if-match');
  return ifMatch === undefined ? { kind: 'none' } : { kind: 'if-match', etag: unquote(ifMatch) };
}

/** The request headers that belong to the object. */
export function keptHeaders(call: S3Call): Record<string, string> {
  const kept: Record<string, string> = { 'content-type': 'binary/octet-stream' };
  for (const name of Object.keys(call.request.headers)) {
    const value = header(call, name);
    if (value !== undefined && (KEPT_HEADERS.includes(name) || name.startsWith('x-amz-meta-'))) kept[name] = value;
  }
  // aws-chunked describes the transfer, not the content.
  const encodings = (header(call, 'content-encoding') ?? '').split(',').map((e) => e.trim());
  const encoding = encodings.filter((e) => e !== '' && e !== 'aws-chunked').join(',');
  if (encoding !== '') kept['content-encoding'] = encoding;
  return kept;
}

export function getObject(call: S3Call, context: S3Context): S3Reply {
  const bucket = context.buckets.need(call.bucket);
  const record = bucket.need(call.key);
  const fd = bucket.open(call.key);
  try {
    const reply = describeObject(call, record);
    const range = reply.status === 200 ? readRange(header(call, 'range'), record.sizeBytes) : null;
    if (range) {
      reply.status = 206;
      reply.headers['content-range'] = `bytes ${range.start}-${range.end}/${record.sizeBytes}`;
      reply.headers['content-length'] = String(range.end - range.start + 1);
    }
    const { start, end } = range ?? { start: 0, end: record.sizeBytes - 1 };
    if (reply.status === 304 || end < start) closeSync(fd);
    else reply.body = createReadStream('', { fd, start, end });
    return reply;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

export function headObject(call: S3Call, context: S3Context): S3Reply {
  return describeObject(call, context.buckets.need(call.bucket).need(call.key));
}

/** The object's headers, or 304, or 412. */
function describeObject(call: S3Call, record: ObjectRecord): S3Reply {
  const ifMatch = header(call, 'if-match');
  if (ifMatch !== undefined && ifMatch !== '*' && unquote(ifMatch) !== record.etag) throw preconditionFailed();
  const etag = `"${record.etag}"`;
  const ifNoneMatch = header(call, 'if-none-match');
  if (ifNoneMatch !== undefined && (ifNoneMatch === '*' || unquote(ifNoneMatch) === record.etag))
    return emptyReply(304, { etag });
  const reply = emptyReply(200, {
    ...record.headers,
    etag,
    'last-modified': new Date(record.modifiedMs).toUTCString(),
    'accept-ranges': 'bytes',
    'content-length': String(record.sizeBytes),
  });
  // The checksum of the whole does not apply to a range.
  if (header(call, 'x-amz-checksum-mode')?.toUpperCase() === 'ENABLED' && header(call, 'range') === undefined)
    Object.assign(reply.headers, record.checksums);
  for (const [parameter, value] of call.query) {
    const name = /^response-(.+)$/.exec(parameter.toLowerCase())?.[1] ?? '';
    if (KEPT_HEADERS.includes(name) || name === 'content-encoding') reply.headers[name] = value;
  }
  return reply;
}

/** The requested bytes, both ends inclusive; null for all. */
export function readRange(text: string | undefined, sizeBytes: number): { start: number; end: number } | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(text?.trim() ?? '');
  // S3 ignores invalid ranges and multiple ranges.
  if (!match || (match[1] === '' && match[2] === '')) return null;
  const [, first = '', last = ''] = match;
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return null;
  if (start >= sizeBytes || (first === '' && Number(last) === 0))
    throw new AwsError('InvalidRange', 'The requested range is not satisfiable', 416);
  return { start, end };
}

export function deleteObject(call: S3Call, context: S3Context): S3Reply {
  context.buckets.need(call.bucket).remove(call.key);
  return emptyReply(204);
}

export async function deleteObjects(call: S3Call, context: S3Context): Promise<S3Reply> {
  const bucket = context.buckets.need(call.bucket);
  const body = await readSmallBody(call, MAX_DELETE_BODY_BYTES);
  const root = parseXml(body);
  const objects = root?.name === 'Delete' ? childrenNamed(root, 'Object') : [];
  if (!root || objects.length === 0 || objects.length > 1_000) throw malformedXml();
  const keys = objects.map((object) => childText(object, 'Key') ?? '');
  if (keys.includes('')) throw malformedXml();
  for (const key of keys) bucket.remove(key);
  const quiet = childText(root, 'Quiet')?.trim() === 'true';
  return xmlReply('DeleteResult', { Deleted: quiet ? undefined : keys.map((Key) => ({ Key })) });
}

export function malformedXml(): AwsError {
  return new AwsError(
    'MalformedXML',
    'The XML you provided was not well-formed or did not validate against our published schema',
  );
}

/** A body with a command rather than data. */
export async function readSmallBody(call: S3Call, maxBytes: number): Promise<string> {
  const tooLarge = new AwsError('MaxMessageLengthExceeded', 'Your request was too big.');
  const body = await readBody(call.request, maxBytes, tooLarge);
  checkMd5(header(call, 'content-md5'), createHash('md5').update(body).digest());
  return body.toString('utf8');
}

const unquote = (etag: string): string => etag.trim().replace(/^(?:W\/)?"(.*)"$/, '$1');
