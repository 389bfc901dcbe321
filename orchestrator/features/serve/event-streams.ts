/** The event streams of all pages: bounded in number, and in what is held for readers that do not read. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Reader } from './live-run.ts';

/** Open streams: some walls of screens. Of a run with 2,000 instances an event has up to a megabyte. */
export const MAX_STREAMS = 64;
/** Below what proxies take for a dead connection. */
const KEEP_ALIVE_MS = 20_000;
/** A megabyte may take a minute on a slow line. */
const MAX_BEATS_BEHIND = 3;

export class EventStreams {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #open = new Set<ServerResponse>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Server-sent events until the page leaves. A page gets its next event when it has read the last one, and is cut off
   * when it reads nothing for a minute; it asks again. When too many are open, one that is behind makes room; where
   * none is, the answer is false, and the response is the caller's.
   */
  open(response: ServerResponse, watch: (onNews: () => void) => Reader): boolean {
    // It left while its run was looked up: it would not say so again.
    if (response.destroyed || response.closed) return true;
    if (this.#open.size >= MAX_STREAMS) {
      const behind = [...this.#open].find((one) => one.writableNeedDrain);
      if (!behind) return false;
      this.#open.delete(behind);
      behind.destroy();
    }
    this.#open.add(response);
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    response.flushHeaders();
    const send = (): void => {
      while (!response.writableNeedDrain && !response.destroyed) {
        const next = reader.next();
        if (next === null) return;
        response.write(`event: ${next.event}\ndata: ${JSON.stringify(next.data)}\n\n`);
      }
    };
    const left = new AbortController();
    const reader = watch(send);
    let beatsBehind = 0;
    response
      .on('drain', () => {
        beatsBehind = 0;
        send();
      })
      .on('close', () => {
        this.#open.delete(response);
        left.abort();
        reader.leave();
      });
    send();
    const beat = (): void => {
      if (!response.writableNeedDrain) response.write(':\n\n');
      else if (++beatsBehind >= MAX_BEATS_BEHIND) response.destroy();
    };
    void this.#repeat(beat, left.signal);
    return true;
  }

  async #repeat(beat: () => void, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#clock.sleep(KEEP_ALIVE_MS, signal);
      if (signal.aborted) return;
      beat();
    }
  }
}
