/** A page source that is still starting, so that the instance can send hello in parallel. */
import type { FetchHooks, PageResult, PageSource } from './page-result.ts';

export class StartingSource implements PageSource {
  readonly #starting: Promise<PageSource | null>;
  #started: PageSource | null = null;

  /** @param starting when it rejects, the owner ends the program */
  constructor(starting: Promise<PageSource>) {
    this.#starting = starting.then(
      (source) => (this.#started = source),
      () => null,
    );
  }

  /** Waits for the start. When that fails, nothing is known about any page: waits until the caller gives up. */
  async fetch(url: string, hooks: FetchHooks, signal: AbortSignal): Promise<PageResult> {
    const source = this.#started ?? (await this.#waitFor(signal));
    return source === null ? { kind: 'stopped' } : source.fetch(url, hooks, signal);
  }

  /** Waits for a pending start, so that nothing is left running. */
  async close(): Promise<void> {
    const source = await this.#starting;
    await source?.close();
  }

  /** Null when the caller has given up. */
  async #waitFor(signal: AbortSignal): Promise<PageSource | null> {
    const { promise: aborted, resolve } = Promise.withResolvers<null>();
    const onAbort = (): void => resolve(null);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return await Promise.race([this.#starting.then((source) => source ?? aborted), aborted]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
