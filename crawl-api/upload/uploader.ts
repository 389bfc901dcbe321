/**
 * Uploads results to the bucket alongside the crawl. Results are cut into parts when there are enough of them, when the
 * oldest has waited long enough, and at the end. The journal records what a part holds before its upload begins. A
 * process killed in between rebuilds the same bytes, and `exists` then counts as `created`.
 */
import { backoffMs } from '../../shared/domain/backoff.ts';
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Random } from '../../shared/ports/random.ts';
import { PART_PRODUCTS } from '../../shared/wire/part.ts';
import { LOG_REQUESTS } from '../../shared/wire/request-log.ts';
import { SignalFlag } from '../process/signal-flag.ts';
import { untilWritten } from '../queue/journal-writer.ts';
import type { Queue } from '../queue/queue.ts';
import type { KeyObject } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { partKey, requestLogKey } from '../../shared/domain/keys.ts';
import { sha256Hex } from '../../shared/wire/signature.ts';
import { type PartName, signPart } from '../../shared/wire/part-signature.ts';
import type { PartRef } from '../../shared/wire/callbacks.ts';
import type { LogCut } from '../queue/request-log.ts';
import type { Cut } from '../queue/result-lines.ts';

export interface UploaderParts {
  queue: Queue;
  owner: { run: string } & EpochId;
  /** Folder of its objects. */
  session: (stop: AbortSignal) => Promise<string | null>;
  /** Signs the parts. */
  privateKey: KeyObject;
  /** Opened at the first upload: a process with nothing to upload does not load the SDK. */
  openStore: () => Promise<ObjectStore>;
  clock: Clock;
  random: Random;
  partMs: number;
  /** Called when a part is in the bucket, and when the problem appears or clears. */
  onChange: () => void;
}

/** Maximum characters per part: long rows wait in memory here, and a whole part is in memory where it is loaded. */
const PART_CHARS = 4_000_000;
const RETRY = { firstMs: 500, maxMs: 30_000 };

export class Uploader {
  readonly #parts: UploaderParts;
  readonly #wake = new SignalFlag();
  #store: ObjectStore | null = null;
  #oldestMs: number | null = null;
  #flushing = false;
  #hurrying = false;
  /** Why results cannot be stored in the bucket; null while they can. */
  problem: string | null = null;
  /** PutObject calls in a row that S3 has refused for lack of a right. */
  #refusals = 0;
  /** Longest time that storing an object took; null before the first. */
  slowestMs: number | null = null;

  constructor(parts: UploaderParts) {
    this.#parts = parts;
  }

  /**
   * What a heartbeat says of refused uploads, for the main server to see whether the role of the instances lacks a
   * right.
   */
  get storeRefused(): { storeRefused?: true } {
    return this.#refusals > 1 ? { storeRefused: true } : {};
  }

  /** Call after every result. */
  noteResult(): void {
    this.#oldestMs ??= this.#parts.clock.monotonic();
    if (this.#isFull()) this.#wake.raise();
  }

  /** Uploads until `flush` was called and everything is in the bucket, or the signal aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { queue } = this.#parts;
    while (!stop.aborted) {
      // Requests first: what a part came from is then known wherever the part is.
      const [log] = queue.state.requestLog.cuts;
      const [cut] = queue.state.lines.cuts;
      if (log !== undefined) await this.#uploadLog(log, stop);
      else if (cut !== undefined) await this.#upload(cut, stop);
      else if (this.#isDue()) await this.#cut(stop);
      else if (this.#isLogDue()) await this.#cutRequests(stop);
      else if (this.#flushing) return;
      else await this.#wait(stop);
    }
  }

  async #wait(stop: AbortSignal): Promise<void> {
    const { clock, partMs } = this.#parts;
    const waitedMs = this.#oldestMs === null ? 0 : clock.monotonic() - this.#oldestMs;
    await this.#wake.wait(clock, Math.max(1, partMs - waitedMs), stop);
  }

  #isLogDue(): boolean {
    const { requestLog } = this.#parts.queue.state;
    return this.#flushing ? requestLog.isCuttable : requestLog.requests >= LOG_REQUESTS;
  }

  /** Uploads what is there now; more may follow. */
  hurry(): void {
    this.#hurrying = true;
    this.#wake.raise();
  }

  /** No more results follow: everything is uploaded now, and `run` ends after that. */
  flush(): void {
    this.#flushing = true;
    this.#wake.raise();
  }

  /** Retries until the object is stored; false only when the signal aborted. */
  async put(key: string, bytes: Uint8Array, contentType: string, stop: AbortSignal): Promise<boolean> {
    const { clock, random, onChange, openStore } = this.#parts;
    for (let failures = 0; !stop.aborted; failures++) {
      try {
        this.#store ??= await openStore();
        const beganMs = clock.monotonic();
        await this.#store.putIfAbsent(key, bytes, contentType);
        this.slowestMs = Math.max(this.slowestMs ?? 0, Math.round(clock.monotonic() - beganMs));
        this.#refusals = 0;
        if (this.problem !== null) {
          this.problem = null;
          onChange();
        }
        return true;
      } catch (error) {
        const problem = `cannot store ${key} in S3: ${describeError(error)}`;
        this.#refusals = error instanceof Error && error.name === 'AccessDenied' ? this.#refusals + 1 : 0;
        const isNew = this.problem === null || this.#refusals === 2;
        this.problem = problem;
        if (isNew) onChange();
        await clock.sleep(backoffMs(failures, RETRY, random.next()), stop);
      }
    }
    return false;
  }

  #isFull(): boolean {
    const { from, to } = this.#parts.queue.state.lines.uncut();
    return to - from >= PART_PRODUCTS || this.#parts.queue.state.lines.uncutChars >= PART_CHARS;
  }

  #isDue(): boolean {
    const { from, to } = this.#parts.queue.state.lines.uncut();
    if (from === to) {
      this.#oldestMs = null;
      this.#hurrying = false;
      return false;
    }
    // Results left by a previous process have no time: their wait starts now.
    this.#oldestMs ??= this.#parts.clock.monotonic();
    if (this.#flushing || this.#hurrying || this.#isFull()) return true;
    return this.#parts.clock.monotonic() - this.#oldestMs >= this.#parts.partMs;
  }

  async #cut(stop: AbortSignal): Promise<void> {
    await this.#journalled(async () => {
      await this.#parts.queue.cutRequests();
      await this.#parts.queue.cut(PART_PRODUCTS, PART_CHARS);
      this.#oldestMs = null;
    }, stop);
  }

  #cutRequests(stop: AbortSignal): Promise<void> {
    return this.#journalled(() => this.#parts.queue.cutRequests(), stop);
  }

  async #journalled(cut: () => Promise<unknown>, stop: AbortSignal): Promise<void> {
    try {
      await cut();
    } catch {
      // A full disk, which the queue reports in the heartbeat. Retry here.
      await this.#parts.clock.sleep(RETRY.firstMs, stop);
    }
  }

  async #uploadLog({ seq, text }: LogCut, stop: AbortSignal): Promise<void> {
    const { queue, clock, owner } = this.#parts;
    const session = await this.#parts.session(stop);
    const { bytes, sha256 } = this.#pack(text, { ...owner, seq, of: 'requests' });
    const key = requestLogKey(owner.run, { ...owner, seq, sha256, session });
    if (!(await this.put(key, bytes, 'application/gzip', stop))) return;
    const log = { seq, key, sha256, sizeBytes: bytes.length };
    await untilWritten(() => queue.note({ t: 'log', log }), clock, stop);
  }

  async #upload(cut: Cut, stop: AbortSignal): Promise<void> {
    const { queue, clock, owner, onChange } = this.#parts;
    const session = await this.#parts.session(stop);
    const { seq } = cut;
    const lines = queue.state.lines.linesOf(cut);
    const { bytes, sha256 } = this.#pack(`${lines.join('\n')}\n`, { ...owner, seq });
    const key = partKey(owner.run, { ...owner, seq, sha256, session });
    if (!(await this.put(key, bytes, 'application/gzip', stop))) return;
    const part: PartRef = { seq, key, sha256, sizeBytes: bytes.length, products: lines.length };
    if (await untilWritten(() => queue.note({ t: 'part', part }), clock, stop)) onChange();
  }

  /** The text as signed gzip: the same bytes in every try. Node writes no time into the header. */
  #pack(text: string, place: PartName): { bytes: Uint8Array; sha256: string } {
    const bytes = signPart(gzipSync(text, { level: 6, memLevel: 8 }), place, this.#parts.privateKey);
    return { bytes, sha256: sha256Hex(bytes) };
  }
}
