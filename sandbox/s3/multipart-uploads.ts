/** Incomplete multipart uploads. They are lost when the sandbox ends; finished objects stay. */
import { createReadStream, rmSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { AwsError } from '../aws-error.ts';

/** The body of a PUT, in a file. */
export interface ReceivedBody {
  path: string;
  sizeBytes: number;
  md5: Buffer;
  /** The verified checksums from the request, by the name of their header. */
  checksums: Record<string, string>;
}

export interface UploadedPart extends ReceivedBody {
  number: number;
  modifiedMs: number;
}

export interface Upload {
  readonly id: string;
  readonly bucket: string;
  readonly key: string;
  readonly startedMs: number;
  readonly headers: Record<string, string>;
  readonly parts: Map<number, UploadedPart>;
}

export class MultipartUploads {
  readonly #uploads = new Map<string, Upload>();

  start(bucket: string, key: string, headers: Record<string, string>, startedMs: number): Upload {
    const id = randomBytes(32).toString('base64url');
    const upload: Upload = { id, bucket, key, startedMs, headers, parts: new Map() };
    this.#uploads.set(id, upload);
    return upload;
  }

  /** Throws S3's NoSuchUpload, including for an upload of another key. */
  need(id: string, bucket: string, key: string): Upload {
    const upload = this.#uploads.get(id);
    if (upload?.bucket === bucket && upload.key === key) return upload;
    throw new AwsError(
      'NoSuchUpload',
      'The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.',
      404,
    );
  }

  of(bucket: string): Upload[] {
    return [...this.#uploads.values()].filter((upload) => upload.bucket === bucket);
  }

  /** A repeated part replaces the earlier one. */
  addPart(upload: Upload, part: UploadedPart): void {
    const replaced = upload.parts.get(part.number);
    if (replaced) rmSync(replaced.path, { force: true });
    upload.parts.set(part.number, part);
  }

  /** Forgets the upload and removes the data of its parts. */
  drop(upload: Upload): void {
    this.#uploads.delete(upload.id);
    for (const part of upload.parts.values()) rmSync(part.path, { force: true });
  }
}

/** The data of all parts, concatenated. */
export async function* readParts(parts: readonly UploadedPart[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield* createReadStream(part.path) as AsyncIterable<Buffer>;
}
