/** The live state of a run: read from the database once, however many pages show it. */
import { readRun, readStory, type RunDocument, type Story } from '../../core/read/run-documents.ts';
import { isUnfinished } from '../../core/lookup/find-run.ts';
import type { RunSample } from '../../core/model/sample.ts';
import type { StoreReaders } from '../../core/model/stores.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import { describeError } from '../../../shared/domain/errors.ts';

/** What a page gets, in order. */
export type LiveEvent =
  | { event: 'run'; data: RunDocument }
  /** Those after the ones sent before. */
  | { event: 'samples'; data: RunSample[] }
  | { event: 'story'; data: Story }
  /** The database does not answer; the page goes on showing what it has. */
  | { event: 'trouble'; data: { message: string } };

/** The largest share of a core that goes into reading. */
const READ_SHARE = 0.04;
const LEAST_PAUSE_MS = 1_000;
const ENDED_PAUSE_MS = 15_000;
/** A page that shows a run: takes what has changed at its own speed. */
export interface Reader {
  /** What it has not been given yet; null while it has everything. What has changed since is skipped over. */
  next(): LiveEvent | null;
  leave(): void;
}

/** One run and the pages that show it. Reads the database while there is at least one. */
export class LiveRun {
  readonly #id: string;
  readonly #stores: StoreReaders;
  readonly #clock: Clock;
  readonly #onIdle: () => void;
  /** Listeners, one for each open page: each is called when there is something new. */
  readonly #listeners = new Set<() => void>();
  #run: RunDocument | null = null;
  /** Versions of `#run` that differ in more than their time. */
  #runVersion = 0;
  #samples: RunSample[] = [];
  #story: Story | null = null;
  #trouble: { message: string } | null = null;
  #newestEvent = '';
  #stop: AbortController | null = null;

  /** @param onIdle called when the last page has left */
  constructor(id: string, stores: StoreReaders, clock: Clock, onIdle: () => void) {
    this.#onIdle = onIdle;
    this.#id = id;
    this.#stores = stores;
    this.#clock = clock;
  }

  /** A reader of the state as it is, then of every change; calls `onNews` when there is something to take. */
  watch(onNews: () => void): Reader {
    this.#listeners.add(onNews);
    if (this.#stop === null) void this.#poll((this.#stop = new AbortController()).signal);
    const given = { story: null as Story | null, samples: 0, run: 0, trouble: this.#trouble };
    return {
      next: () => {
        if (this.#story !== null && given.story !== this.#story)
          return { event: 'story', data: (given.story = this.#story) };
        if (given.samples < this.#samples.length) {
          const data = this.#samples.slice(given.samples);
          given.samples = this.#samples.length;
          return { event: 'samples', data };
        }
        if (this.#run !== null && given.run < this.#runVersion) {
          given.run = this.#runVersion;
          return { event: 'run', data: this.#run };
        }
        if (given.trouble === this.#trouble) return null;
        given.trouble = this.#trouble;
        return this.#trouble && { event: 'trouble', data: this.#trouble };
      },
      leave: () => {
        this.#listeners.delete(onNews);
        if (this.#listeners.size > 0) return;
        this.#stop?.abort();
        this.#onIdle();
      },
    };
  }

  async #poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const startedMs = this.#clock.monotonic();
      let isOver = false;
      try {
        isOver = await this.#read();
        this.#trouble = null;
      } catch (error) {
        this.#trouble = { message: describeError(error) };
      }
      for (const tell of this.#listeners) tell();
      const tookMs = this.#clock.monotonic() - startedMs;
      const pauseMs = Math.max(isOver ? ENDED_PAUSE_MS : LEAST_PAUSE_MS, tookMs / READ_SHARE);
      await this.#clock.sleep(pauseMs, signal);
    }
  }

  /** True once nothing of the run will change by itself. */
  async #read(): Promise<boolean> {
    const reader = this.#stores.of(this.#id);
    const record = await reader.run.get();
    if (record === null) return true;
    const [newest] = await reader.run.events(1);
    const newestEvent = JSON.stringify(newest ?? null);
    if (newestEvent !== this.#newestEvent) {
      this.#story = await readStory(record, reader);
      this.#newestEvent = newestEvent;
    }
    const samples = (await this.#stores.runs.samples?.(this.#id, this.#samples.at(-1)?.atMs ?? 0)) ?? [];
    if (samples.length > 0) this.#samples = [...this.#samples, ...samples];
    const run = await readRun(record, reader);
    const isNews = JSON.stringify({ ...run, at: '' }) !== JSON.stringify({ ...this.#run, at: '' });
    this.#run = run;
    if (isNews) this.#runVersion++;
    return !isUnfinished(record);
  }
}
