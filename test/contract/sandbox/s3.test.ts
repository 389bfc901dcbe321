/** The sandbox's S3 through AWS's own SDK and, where the SDK hides details, plain HTTP. */
import { createHash } from 'node:crypto';
import {
  type CompleteMultipartUploadCommandOutput,
  GetObjectCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  type PutObjectCommandInput,
  S3,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { beforeEach, describe, expect, it } from 'vitest';
import { accessKeyOf } from '../../../sandbox/instance-role.ts';
import { S3ObjectStore } from '../../../shared/adapters/s3-object-store.ts';
import { OWN_SESSION, ROLE_CASES } from '../../support/instance-role-cases.ts';
import { refusal } from '../../support/sandbox/clients.ts';
import type { TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { useSandbox } from './use-sandbox.ts';

let sandbox: TestSandbox;
let s3: S3;
let Bucket: string;
let buckets = 0;

useSandbox((made) => {
  ({ sandbox } = made);
  ({ s3 } = made.clients);
});
beforeEach(async () => {
  Bucket = `bucket-${++buckets}`;
  await s3.createBucket({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'ap-northeast-1' } });
});

const put = (Key: string, body: string | Uint8Array, more: Partial<PutObjectCommandInput> = {}) =>
  // As bytes: the SDK takes an empty string for a stream.
  s3.putObject({ Bucket, Key, Body: Buffer.from(body), ...more });

async function get(Key: string): Promise<string> {
  const reply = await s3.getObject({ Bucket, Key, ChecksumMode: 'ENABLED' });
  return reply.Body!.transformToString();
}

describe('objects', () => {
  it('are returned as they were put, with type, metadata, MD5 as ETag and their checksum', async () => {
    const body = Buffer.from('hello ü');
    const written = await put('a/b.txt', body, {
      ContentType: 'text/plain',
      ContentEncoding: 'identity',
      Metadata: { run: 'r1' },
      ChecksumAlgorithm: 'CRC32',
    });
    expect(written.ETag).toBe(`"${createHash('md5').update(body).digest('hex')}"`);
    const head = await s3.headObject({ Bucket, Key: 'a/b.txt', ChecksumMode: 'ENABLED' });
    expect(head).toMatchObject({
      ContentLength: 8,
      ContentType: 'text/plain',
      ContentEncoding: 'identity',
      Metadata: { run: 'r1' },
      ChecksumCRC32: written.ChecksumCRC32,
    });
    expect(written.ChecksumCRC32).toBeDefined();
    expect(await get('a/b.txt')).toBe('hello ü');
  });

  it.each([
    '../../../etc/passwd',
    './x',
    'a//b',
    'a/../b',
    '.',
    '..',
    '日本語/ü +&<>"\'%25?#',
    'x'.repeat(1_000),
    '.'.repeat(400),
    'a',
    'a/',
  ])('are kept under the key %j, inside the data folder', async (key) => {
    await put(key, `body of ${key}`);
    expect(await get(key)).toBe(`body of ${key}`);
    const listed = await s3.listObjectsV2({ Bucket });
    expect(listed.Contents?.map((o) => o.Key)).toEqual([key]);
    await s3.deleteObject({ Bucket, Key: key });
    expect(await refusal(get(key))).toEqual({ code: 'NoSuchKey', status: 404 });
  });

  it('are returned in part for a Range', async () => {
    await put('digits', '0123456789');
    const part = async (Range: string) => {
      const reply = await s3.getObject({ Bucket, Key: 'digits', Range });
      return [await reply.Body!.transformToString(), reply.ContentRange];
    };
    expect(await part('bytes=2-4')).toEqual(['234', 'bytes 2-4/10']);
    expect(await part('bytes=7-')).toEqual(['789', 'bytes 7-9/10']);
    expect(await part('bytes=-2')).toEqual(['89', 'bytes 8-9/10']);
    expect(await refusal(part('bytes=10-'))).toEqual({ code: 'InvalidRange', status: 416 });
  });

  it('answer 404 to HEAD and GET when there are none', async () => {
    expect((await refusal(s3.headObject({ Bucket, Key: 'none' }))).status).toBe(404);
    expect(await refusal(get('none'))).toEqual({ code: 'NoSuchKey', status: 404 });
    await s3.deleteObject({ Bucket, Key: 'none' });
  });

  it('stream in without a known length, with the checksum at the end', async () => {
    const response = await fetch(`${sandbox.endpoint}/${Bucket}/trailer`, {
      method: 'PUT',
      headers: {
        authorization: 'AWS4-HMAC-SHA256 Credential=a/20260101/r/s3/aws4_request',
        'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
        'content-encoding': 'aws-chunked',
        'x-amz-decoded-content-length': '11',
        'x-amz-trailer': 'x-amz-checksum-crc32c',
      },
      body: '6\r\nhello \r\n5\r\nworld\r\n0\r\nx-amz-checksum-crc32c:yZRlqg==\r\n\r\n',
    });
    expect(response.status).toBe(200);
    expect(await get('trailer')).toBe('hello world');
    const head = await s3.headObject({ Bucket, Key: 'trailer', ChecksumMode: 'ENABLED' });
    expect(head.ContentEncoding).toBeUndefined();
    expect(head.ChecksumCRC32C).toBe('yZRlqg==');
  });

  it.each([
    ['MD5', { ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==' }],
    ['CRC32', { ChecksumCRC32: 'AAAAAA==' }],
    ['CRC32C', { ChecksumCRC32C: 'AAAAAA==' }],
    ['CRC64NVME', { ChecksumCRC64NVME: 'AAAAAAAAAAA=' }],
    ['SHA-1', { ChecksumSHA1: Buffer.alloc(20).toString('base64') }],
    ['SHA-256', { ChecksumSHA256: Buffer.alloc(32).toString('base64') }],
  ])('are not stored when their %s does not match', async (_name, more) => {
    expect(await refusal(put('bad', 'body', more))).toEqual({ code: 'BadDigest', status: 400 });
    expect((await refusal(get('bad'))).code).toBe('NoSuchKey');
  });
});

describe('conditional writes', () => {
  it('replace only the version they name', async () => {
    const { ETag } = await put('versioned', 'one');
    await put('versioned', 'two', { IfMatch: ETag! });
    expect((await refusal(put('versioned', 'three', { IfMatch: ETag! }))).status).toBe(412);
    expect(await get('versioned')).toBe('two');
  });
});

describe('listings', () => {
  it('are in order of UTF-8 bytes and page through every key once', async () => {
    const keys = ['b', 'a/2', 'a/1', 'Z', '日本', '\u{1F590}', '\uFF5E', 'a', 'a!'];
    for (const key of keys) await put(key, '');
    const seen: (string | undefined)[] = [];
    for await (const { Contents } of paginateListObjectsV2({ client: s3, pageSize: 2 }, { Bucket })) {
      expect(Contents!.length).toBeLessThanOrEqual(2);
      seen.push(...Contents!.map((o) => o.Key));
    }
    expect(seen).toEqual(keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  });

  it('group keys by a delimiter, below a prefix, after a key', async () => {
    for (const key of ['r/0/1/x', 'r/0/2/x', 'r/1/1/x', 'r/m', 'q']) await put(key, 'x');
    const page = await s3.listObjectsV2({ Bucket, Prefix: 'r/', Delimiter: '/' });
    expect(page.CommonPrefixes?.map((p) => p.Prefix)).toEqual(['r/0/', 'r/1/']);
    expect(page.Contents?.map((o) => [o.Key, o.Size])).toEqual([['r/m', 1]]);
    const after = await s3.listObjectsV2({ Bucket, StartAfter: 'r/0/2/x' });
    expect(after.Contents?.map((o) => o.Key)).toEqual(['r/1/1/x', 'r/m']);
  });

  it('can encode keys that XML cannot carry', async () => {
    await put('a\u0001b c+d', '');
    const page = await s3.listObjectsV2({ Bucket, EncodingType: 'url' });
    expect(page.Contents?.[0]?.Key).toBe('a%01b+c%2Bd');
  });
});

it('delete many keys in one call, including missing ones', async () => {
  await put('x & y', '');
  await put('z', '');
  const Objects = [{ Key: 'x & y' }, { Key: 'none' }];
  const reply = await s3.deleteObjects({ Bucket, Delete: { Objects } });
  expect(reply.Deleted?.map((d) => d.Key)).toEqual(['x & y', 'none']);
  const left = await s3.listObjectsV2({ Bucket });
  expect(left.Contents?.map((o) => o.Key)).toEqual(['z']);
});

describe('uploads in parts', () => {
  interface Part {
    PartNumber: number;
    ETag: string;
  }
  const Key = 'big';
  const start = async (): Promise<string> => (await s3.createMultipartUpload({ Bucket, Key })).UploadId!;
  const part = async (UploadId: string, PartNumber: number, Body: Buffer): Promise<Part> => ({
    PartNumber,
    ETag: (await s3.uploadPart({ Bucket, Key, UploadId, PartNumber, Body })).ETag!,
  });
  const complete = (UploadId: string, Parts: Part[]): Promise<CompleteMultipartUploadCommandOutput> =>
    s3.completeMultipartUpload({ Bucket, Key, UploadId, MultipartUpload: { Parts } });
  const five = Buffer.alloc(5 * 1024 ** 2, 'a');

  it('become one object with an ETag of their ETags', async () => {
    const id = await start();
    const second = await part(id, 2, Buffer.from('tail'));
    const first = await part(id, 1, five);
    const listed = await s3.listParts({ Bucket, Key, UploadId: id });
    expect(listed.Parts?.map((p) => p.PartNumber)).toEqual([1, 2]);
    const done = await complete(id, [first, second]);
    expect(done.ETag).toMatch(/^"[0-9a-f]{32}-2"$/);
    const whole = await s3.getObject({ Bucket, Key, Range: `bytes=${five.length - 1}-` });
    expect(await whole.Body!.transformToString()).toBe('atail');
    expect((await refusal(complete(id, [first, second]))).code).toBe('NoSuchUpload');
  });

  it('are refused with a wrong order, a wrong ETag or a small part in the middle', async () => {
    const id = await start();
    const small = [await part(id, 1, Buffer.from('a')), await part(id, 2, Buffer.from('b'))] as const;
    expect((await refusal(complete(id, [small[1], small[0]]))).code).toBe('InvalidPartOrder');
    expect((await refusal(complete(id, [{ PartNumber: 1, ETag: '"0"' }]))).code).toBe('InvalidPart');
    expect((await refusal(complete(id, [...small]))).code).toBe('EntityTooSmall');
  });

  it('are gone after an abort', async () => {
    const id = await start();
    await part(id, 1, Buffer.from('a'));
    expect((await s3.listMultipartUploads({ Bucket })).Uploads).toHaveLength(1);
    await s3.abortMultipartUpload({ Bucket, Key, UploadId: id });
    expect((await refusal(part(id, 2, five))).code).toBe('NoSuchUpload');
    expect((await s3.listMultipartUploads({ Bucket })).Uploads).toBeUndefined();
  });
});

describe('presigned URLs', () => {
  it('read and write an object without credentials', async () => {
    const putUrl = await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key: 'signed' }), { expiresIn: 60 });
    expect((await fetch(putUrl, { method: 'PUT', body: 'by curl' })).status).toBe(200);
    const getUrl = await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: 'signed' }), { expiresIn: 60 });
    expect(await (await fetch(getUrl)).text()).toBe('by curl');
  });

  it('are needed: a request without any credentials is denied', async () => {
    const response = await fetch(`${sandbox.endpoint}/${Bucket}/signed`);
    expect(response.status).toBe(403);
    expect(await response.text()).toContain('<Code>AccessDenied</Code>');
  });
});

describe('buckets', () => {
  it('are listed, located, headed and deleted when empty', async () => {
    const all = await s3.listBuckets({});
    expect(all.Buckets?.map((b) => b.Name)).toContain(Bucket);
    expect((await s3.getBucketLocation({ Bucket })).LocationConstraint).toBe('ap-northeast-1');
    expect((await s3.headBucket({ Bucket })).BucketRegion).toBe('ap-northeast-1');
    await put('x', '');
    expect(await refusal(s3.deleteBucket({ Bucket }))).toEqual({
      code: 'BucketNotEmpty',
      status: 409,
    });
    await s3.deleteObject({ Bucket, Key: 'x' });
    await s3.deleteBucket({ Bucket });
    expect((await refusal(s3.headBucket({ Bucket }))).status).toBe(404);
    expect((await refusal(put('x', ''))).code).toBe('NoSuchBucket');
  });

  it('have the default settings at first', async () => {
    expect((await s3.getBucketVersioning({ Bucket })).Status).toBeUndefined();
    expect(await refusal(s3.getBucketPolicy({ Bucket }))).toEqual({ code: 'NoSuchBucketPolicy', status: 404 });
    const nowhere = s3.getBucketPolicy({ Bucket: 'no-such-bucket' });
    expect(await refusal(nowhere)).toEqual({ code: 'NoSuchBucket', status: 404 });
  });

  it.each([
    ['an existing one', null, 'ap-northeast-1', 'BucketAlreadyOwnedByYou'],
    ['another region', 'elsewhere', 'eu-west-1', 'IllegalLocationConstraintException'],
    ['a bad name', 'Bad_Name', 'ap-northeast-1', 'InvalidBucketName'],
  ] as const)('are refused for %s', async (_what, name, region, code) => {
    const CreateBucketConfiguration = { LocationConstraint: region };
    const call = s3.createBucket({ Bucket: name ?? Bucket, CreateBucketConfiguration });
    expect((await refusal(call)).code).toBe(code);
  });

  it('answer NotImplemented to what the sandbox does not have', async () => {
    const call = s3.listObjectVersions({ Bucket });
    expect(await refusal(call)).toEqual({ code: 'NotImplemented', status: 501 });
  });
});

describe('the role of instances', () => {
  const instanceId = OWN_SESSION.split(':')[1]!;
  const credentials = { accessKeyId: accessKeyOf(instanceId), secretAccessKey: 'x', sessionToken: 'x' };
  let own: S3;

  beforeEach(() => {
    const { endpoint, region } = sandbox;
    own = new S3({ endpoint, region, credentials, forcePathStyle: true, maxAttempts: 1 });
    return async () => {
      own.destroy();
      await sandbox.control('DELETE', 'conditions');
    };
  });

  it('is named to its instance by STS, as its policy names it', async () => {
    const { endpoint, region } = sandbox;
    using store = new S3ObjectStore({ endpoint, region, bucket: Bucket, credentials });
    expect(await store.userId()).toBe(OWN_SESSION);
    await store.putIfAbsent(`runs/r/0/1/${OWN_SESSION}/manifest.json`, Buffer.from('{}'), 'application/json');
    await sandbox.control('POST', 'faults', [
      { what: 'error', action: 'GetCallerIdentity', code: 'AccessDenied', count: 1 },
    ]);
    await expect(store.userId()).rejects.toThrow(/^STS at http:.* answered 403: .*AccessDenied/s);
  });

  it.each(['own-folder', 'all-runs'] as const)(
    'is refused what its policy does not allow: %s',
    async (instanceRole) => {
      await sandbox.control('PATCH', 'conditions', { instanceRole });
      for (const { what, key: Key, allowed, allowedBefore = allowed, onlyIfAbsent = true, action } of ROLE_CASES) {
        // Each new, whatever another case has put there.
        await s3.deleteObject({ Bucket, Key });
        const call =
          action === 'GetObject'
            ? own.getObject({ Bucket, Key })
            : own.putObject({ Bucket, Key, Body: Buffer.from('x'), ...(onlyIfAbsent ? { IfNoneMatch: '*' } : {}) });
        const isAllowed = instanceRole === 'own-folder' ? allowed : allowedBefore;
        const answer = await call.then(
          () => 'done',
          (error: Error) => error.name,
        );
        expect(answer, what).toBe(isAllowed ? 'done' : 'AccessDenied');
      }
    },
  );
});
