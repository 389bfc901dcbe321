/** One request to S3 and its answer, between HTTP and the handlers. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../shared/ports/clock.ts';
import type { AwsError } from '../aws-error.ts';
import { xmlDocument, type XmlNode } from '../xml.ts';
import type { BucketStore } from './bucket-store.ts';
import type { MultipartUploads } from './multipart-uploads.ts';

/** The state that S3's calls work on. */
export interface S3Context {
  clock: Clock;
  buckets: BucketStore;
  uploads: MultipartUploads;
}

export interface S3Call {
  request: IncomingMessage;
  /** The bucket's name; empty for the list of buckets. */
  bucket: string;
  /** The object's key; empty for the bucket itself. */
  key: string;
  query: URLSearchParams;
}

export interface S3Reply {
  status: number;
  headers: Record<string, string>;
  body: string | Readable | null;
}

/** One call of S3. Throws AwsError. */
export type S3Handler = (call: S3Call, context: S3Context) => S3Reply | Promise<S3Reply>;

export const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

export function emptyReply(status: number, headers: Record<string, string> = {}): S3Reply {
  return { status, headers, body: null };
}

export function xmlReply(root: string, content: XmlNode | string, headers: Record<string, string> = {}): S3Reply {
  return {
    status: 200,
    headers: { 'content-type': 'application/xml', ...headers },
    body: xmlDocument(root, content, NAMESPACE),
  };
}

/** An error in S3's form. */
export function errorReply(error: AwsError, resource: string, requestId: string): S3Reply {
  return {
    status: error.status,
    headers: { 'content-type': 'application/xml' },
    body: xmlDocument('Error', {
      Code: error.code,
      Message: error.message,
      Resource: resource,
      RequestId: requestId,
      HostId: 'crawlfleet-sandbox',
    }),
  };
}

/** A header with one value; undefined when it is absent. */
export function header(call: S3Call, name: string): string | undefined {
  const value = call.request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
