/**
 * Buckets as folders. An index in memory is rebuilt from the files at start, so the next sandbox with the same data
 * folder has the same objects. File system steps that must not be interleaved (check, link, index) are synchronous,
 * which makes "write only if absent" free of races.
 */
import { linkSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { AwsError } from '../aws-error.ts';
import { compareKeys, keyToPath } from './key-path.ts';
import { appendRecord, type ObjectRecord, readRecord } from './object-file.ts';

export type Condition = { kind: 'none' } | { kind: 'if-absent' } | { kind: 'if-match'; etag: string };

export class Bucket {
  readonly name: string;
  readonly about: { region: string; createdMs: number };
  readonly #folder: string;
  readonly #records = new Map<string, ObjectRecord>();
  #sorted: string[] | null = null;

  constructor(name: string, folder: string, about: Bucket['about']) {
    this.name = name;
    this.about = about;
    this.#folder = folder;
  }

  get size(): number {
    return this.#records.size;
  }

  /** Loads the objects of an earlier sandbox. Files that are not complete objects are ignored. */
  load(): void {
    for (const entry of readdirSync(this.#objectFolder(), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const record = readRecord(join(entry.parentPath, entry.name));
      if (record) this.#records.set(record.key, record);
    }
  }

  /** A setting of the bucket as put (bucket-properties.ts); empty when it was deleted, null when it was never put. */
  property(name: string): string | null {
    try {
      return readFileSync(join(this.#folder, `${name}.xml`), 'utf8');
    } catch {
      return null;
    }
  }

  /** Sets a property; null: the default of a new bucket. */
  setProperty(name: string, xml: string | null): void {
    const path = join(this.#folder, `${name}.xml`);
    if (xml === null) rmSync(path, { force: true });
    else writeFileSync(path, xml);
  }

  find(key: string): ObjectRecord | null {
    return this.#records.get(key) ?? null;
  }

  /** Throws S3's NoSuchKey. */
  need(key: string): ObjectRecord {
    const record = this.find(key);
    if (!record) throw new AwsError('NoSuchKey', 'The specified key does not exist.', 404);
    return record;
  }

  /** Keys in S3's order. */
  keys(): readonly string[] {
    this.#sorted ??= [...this.#records.keys()].sort(compareKeys);
    return this.#sorted;
  }

  /**
   * Turns a file with the data into the object of its key; the file is gone afterwards. Throws when the condition
   * fails.
   */
  commit(path: string, record: ObjectRecord, condition: Condition): void {
    try {
      this.#check(record.key, condition);
      appendRecord(path, record);
      const target = this.#pathOf(record.key);
      mkdirSync(dirname(target), { recursive: true });
      if (condition.kind === 'if-absent') linkSync(path, target);
      else renameSync(path, target);
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? preconditionFailed() : error;
    } finally {
      rmSync(path, { force: true });
    }
    if (!this.#records.has(record.key)) this.#sorted = null;
    this.#records.set(record.key, record);
  }

  /** A file descriptor of the object, which stays readable whatever happens to the key; the caller closes it. */
  open(key: string): number {
    return openSync(this.#pathOf(key), 'r');
  }

  /** A missing key counts as removed. */
  remove(key: string): void {
    if (!this.#records.delete(key)) return;
    this.#sorted = null;
    rmSync(this.#pathOf(key), { force: true });
  }

  #check(key: string, condition: Condition): void {
    if (condition.kind === 'if-absent' && this.find(key)) throw preconditionFailed();
    if (condition.kind === 'if-match' && this.need(key).etag !== condition.etag) throw preconditionFailed();
  }

  #objectFolder(): string {
    return join(this.#folder, 'objects');
  }

  #pathOf(key: string): string {
    return join(this.#objectFolder(), keyToPath(key));
  }
}

export function preconditionFailed(): AwsError {
  return new AwsError('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', 412);
}

export class BucketStore {
  readonly #folder: string;
  readonly #scratch: string;
  readonly #buckets = new Map<string, Bucket>();

  /** @param folder created if missing; unfinished bodies of a killed sandbox are removed */
  constructor(folder: string) {
    this.#folder = folder;
    // Not a valid bucket name, so it cannot clash.
    this.#scratch = join(folder, '.receiving');
    rmSync(this.#scratch, { recursive: true, force: true });
    mkdirSync(this.#scratch, { recursive: true, mode: 0o700 });
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory() && !entry.name.startsWith('.')) this.#load(entry.name);
    }
  }

  /** A path in the same file system for an incoming body. */
  scratchPath(): string {
    return join(this.#scratch, randomUUID());
  }

  all(): Bucket[] {
    return [...this.#buckets.values()].sort((a, b) => compareKeys(a.name, b.name));
  }

  find(name: string): Bucket | null {
    return this.#buckets.get(name) ?? null;
  }

  /** Throws S3's NoSuchBucket. */
  need(name: string): Bucket {
    const bucket = this.find(name);
    if (!bucket) throw new AwsError('NoSuchBucket', 'The specified bucket does not exist', 404);
    return bucket;
  }

  create(name: string, about: Bucket['about']): Bucket {
    const folder = join(this.#folder, name);
    mkdirSync(join(folder, 'objects'), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, 'bucket.json'), JSON.stringify(about));
    const bucket = new Bucket(name, folder, about);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  remove(bucket: Bucket): void {
    if (bucket.size > 0) throw new AwsError('BucketNotEmpty', 'The bucket you tried to delete is not empty', 409);
    this.lose(bucket.name);
  }

  /** Including its objects; no effect when it does not exist. */
  lose(name: string): void {
    if (this.#buckets.delete(name)) rmSync(join(this.#folder, name), { recursive: true, force: true });
  }

  #load(name: string): void {
    const folder = join(this.#folder, name);
    try {
      const about: unknown = JSON.parse(readFileSync(join(folder, 'bucket.json'), 'utf8'));
      const bucket = new Bucket(name, folder, about as Bucket['about']);
      bucket.load();
      this.#buckets.set(name, bucket);
    } catch {
      // Not a bucket: a foreign folder, or one whose creation was interrupted before it was answered.
    }
  }
}
