/** The state that S3's calls work on. */
import type { Clock } from '../../shared/ports/clock.ts';
import type { BucketStore } from './bucket-store.ts';
import type { MultipartUploads } from './multipart-uploads.ts';

export interface S3Context {
  clock: Clock;
  buckets: BucketStore;
  uploads: MultipartUploads;
}
