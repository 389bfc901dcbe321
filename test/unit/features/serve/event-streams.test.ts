/** Event streams hold little for pages that do not read, and nothing for those that have left. */
import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { EventStreams, MAX_STREAMS } from '../../../../orchestrator/features/serve/event-streams.ts';
import type { LiveEvent, Reader } from '../../../../orchestrator/features/serve/live-run.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const EVENT_BYTES = 100_000;

/** A page's response; `read()` takes what waits. */
class Page extends Writable {
  sent = '';
  #reading: (() => void) | null = null;
  isReading = false;
  writeHead(): void {}
  flushHeaders(): void {}
  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    const take = (): void => {
      this.sent += bytes.toString();
      done();
    };
    if (this.isReading) take();
    else this.#reading = take;
  }
  read(): void {
    this.isReading = true;
    this.#reading?.();
  }
}

/** Something to watch, which changes on request. */
class Run {
  version = 1;
  readonly listeners = new Set<() => void>();
  watch = (onNews: () => void): Reader => {
    this.listeners.add(onNews);
    let given = 0;
    return {
      next: () => {
        if (given === this.version) return null;
        given = this.version;
        return { event: 'trouble', data: { message: `${given} `.padEnd(EVENT_BYTES, 'x') } } satisfies LiveEvent;
      },
      leave: () => void this.listeners.delete(onNews),
    };
  };
  change(): void {
    this.version++;
    for (const tell of this.listeners) tell();
  }
}

describe('event streams', () => {
  const clock = new VirtualClock();
  const openPage = (streams: EventStreams, run: Run, page = new Page()): { page: Page; isOpen: boolean } => ({
    page,
    isOpen: streams.open(page as unknown as ServerResponse, run.watch),
  });

  it('hold one event for a page that does not read, and then send it the newest', async () => {
    const run = new Run();
    const { page } = openPage(new EventStreams(clock), run);
    for (let i = 0; i < 50; i++) run.change();
    expect(page.writableLength).toBeLessThan(1.1 * EVENT_BYTES);
    page.read();
    await clock.advance(0);
    expect([...page.sent.matchAll(/"message":"(\d+)/g)].map(([, version]) => version)).toEqual(['1', '51']);
    page.destroy();
  });

  it('cut off a page that reads nothing for a minute, and keep one that reads', async () => {
    const run = new Run();
    const streams = new EventStreams(clock);
    const [stalled, live] = [openPage(streams, run).page, openPage(streams, run).page];
    live.read();
    await clock.advance(59_000);
    expect([stalled.destroyed, live.destroyed]).toEqual([false, false]);
    await clock.advance(1_000);
    expect([stalled.destroyed, live.destroyed]).toEqual([true, false]);
    expect(run.listeners.size).toBe(1);
    live.destroy();
    await clock.advance(0);
    expect(run.listeners.size).toBe(0);
  });

  it('are bounded in number: one that is behind makes room, those that read stay', () => {
    const run = new Run();
    const streams = new EventStreams(clock);
    const pages = Array.from({ length: MAX_STREAMS }, () => openPage(streams, run).page);
    for (const page of pages.slice(1)) page.read();
    const late = openPage(streams, run);
    late.page.read();
    expect([late.isOpen, pages.map(({ destroyed }) => destroyed).indexOf(true)]).toEqual([true, 0]);
    // No page is behind any more.
    expect(openPage(streams, run).isOpen).toBe(false);
    for (const page of [...pages, late.page]) page.destroy();
  });

  it('watch nothing for a page that left while its run was looked up', () => {
    const run = new Run();
    const page = new Page();
    page.destroy();
    openPage(new EventStreams(clock), run, page);
    expect(run.listeners.size).toBe(0);
  });
});
