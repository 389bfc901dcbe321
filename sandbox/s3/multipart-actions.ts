/** Multipart uploads: create, upload a part, complete, abort, list. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { AwsError } from '../aws-error.ts';
import { childText, childrenNamed, parseXml } from '../xml.ts';
import { readParts, type Upload, type UploadedPart } from './multipart-uploads.ts';
import { checkKey, keptHeaders, malformedXml, readCondition, readSmallBody, refuseCopy } from './object-actions.ts';
import { receiveBody } from './receive-body.ts';
import { emptyReply, header, type S3Call, type S3Context, type S3Reply, xmlReply } from './s3-call.ts';

const MAX_PARTS = 10_000;
/** Minimum size of every part but the last. */
const MIN_PART_BYTES = 5 * 1024 ** 2;
/** Enough for 10,000 parts with their checksums. */
const MAX_COMPLETE_BODY_BYTES = 4_000_000;

export function createMultipartUpload(call: S3Call, context: S3Context): S3Reply {
  context.buckets.need(call.bucket);
  checkKey(call.key);
  const upload = context.uploads.start(call.bucket, call.key, keptHeaders(call), context.clock.now());
  const algorithm = header(call, 'x-amz-checksum-algorithm');
  return xmlReply(
    'InitiateMultipartUploadResult',
    { Bucket: call.bucket, Key: call.key, UploadId: upload.id },
    algorithm === undefined ? {} : { 'x-amz-checksum-algorithm': algorithm },
  );
}

const uploadOf = (call: S3Call, context: S3Context): Upload =>
  context.uploads.need(call.query.get('uploadId') ?? '', call.bucket, call.key);

export async function uploadPart(call: S3Call, context: S3Context): Promise<S3Reply> {
  context.buckets.need(call.bucket);
  refuseCopy(call);
  const upload = uploadOf(call, context);
  const number = Number(call.query.get('partNumber'));
  if (!Number.isInteger(number) || number < 1 || number > MAX_PARTS)
    throw new AwsError('InvalidArgument', `Part number must be an integer between 1 and ${MAX_PARTS}, inclusive`);
  const body = await receiveBody(call, context.buckets.scratchPath());
  // The upload was aborted or completed while the part was received: discard its data.
  try {
    uploadOf(call, context);
  } catch (error) {
    await rm(body.path, { force: true });
    throw error;
  }
  context.uploads.addPart(upload, { ...body, number, modifiedMs: context.clock.now() });
  return emptyReply(200, { etag: `"${body.md5.toString('hex')}"`, ...body.checksums });
}

export async function completeMultipartUpload(call: S3Call, context: S3Context): Promise<S3Reply> {
  const bucket = context.buckets.need(call.bucket);
  const upload = uploadOf(call, context);
  const condition = readCondition(call);
  const parts = chooseParts(await readSmallBody(call, MAX_COMPLETE_BODY_BYTES), upload);
  const path = context.buckets.scratchPath();
  try {
    await pipeline(readParts(parts), createWriteStream(path, { flags: 'wx', mode: 0o600 }));
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
  // Only after the data is assembled: a second completion of the same upload then finds it gone.
  uploadOf(call, context);
  const etag = createHash('md5')
    .update(Buffer.concat(parts.map((part) => part.md5)))
    .digest('hex');
  const record = {
    key: call.key,
    sizeBytes: parts.reduce((sum, part) => sum + part.sizeBytes, 0),
    etag: `${etag}-${parts.length}`,
    modifiedMs: context.clock.now(),
    headers: upload.headers,
    checksums: {},
  };
  bucket.commit(path, record, condition);
  context.uploads.drop(upload);
  return xmlReply('CompleteMultipartUploadResult', {
    Location: `/${call.bucket}/${call.key}`,
    Bucket: call.bucket,
    Key: call.key,
    ETag: `"${record.etag}"`,
  });
}

/** The parts named by the caller, checked against the uploaded ones. */
function chooseParts(body: string, upload: Upload): UploadedPart[] {
  const root = parseXml(body);
  const named = root?.name === 'CompleteMultipartUpload' ? childrenNamed(root, 'Part') : [];
  if (named.length === 0) throw malformedXml();
  let last = 0;
  const parts = named.map((element) => {
    const number = Number(childText(element, 'PartNumber'));
    if (number <= last)
      throw new AwsError(
        'InvalidPartOrder',
        'The list of parts was not in ascending order. Parts must be ordered by part number.',
      );
    last = number;
    const part = upload.parts.get(number);
    const etag = childText(element, 'ETag')
      ?.trim()
      .replace(/^"(.*)"$/, '$1');
    if (!part || etag !== part.md5.toString('hex'))
      throw new AwsError(
        'InvalidPart',
        "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
      );
    return part;
  });
  if (parts.slice(0, -1).some((part) => part.sizeBytes < MIN_PART_BYTES))
    throw new AwsError('EntityTooSmall', 'Your proposed upload is smaller than the minimum allowed size');
  return parts;
}

export function abortMultipartUpload(call: S3Call, context: S3Context): S3Reply {
  context.uploads.drop(uploadOf(call, context));
  return emptyReply(204);
}

/** All in one page. */
export function listParts(call: S3Call, context: S3Context): S3Reply {
  const upload = uploadOf(call, context);
  const parts = [...upload.parts.values()].sort((a, b) => a.number - b.number);
  return xmlReply('ListPartsResult', {
    Bucket: call.bucket,
    Key: call.key,
    UploadId: upload.id,
    MaxParts: MAX_PARTS,
    IsTruncated: false,
    Part: parts.map((part) => ({
      PartNumber: part.number,
      LastModified: new Date(part.modifiedMs).toISOString(),
      ETag: `"${part.md5.toString('hex')}"`,
      Size: part.sizeBytes,
    })),
    StorageClass: 'STANDARD',
  });
}

export function listMultipartUploads(call: S3Call, context: S3Context): S3Reply {
  context.buckets.need(call.bucket);
  const prefix = call.query.get('prefix') ?? '';
  return xmlReply('ListMultipartUploadsResult', {
    Bucket: call.bucket,
    Prefix: prefix,
    MaxUploads: 1_000,
    IsTruncated: false,
    Upload: context.uploads
      .of(call.bucket)
      .filter((upload) => upload.key.startsWith(prefix))
      .map((upload) => ({
        Key: upload.key,
        UploadId: upload.id,
        Initiated: new Date(upload.startedMs).toISOString(),
        StorageClass: 'STANDARD',
      })),
  });
}
