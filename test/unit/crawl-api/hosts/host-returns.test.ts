/** What an instance owes the next owner of its hosts when it gives them back. */
import { describe, expect, it } from 'vitest';
import { closeEpoch, type ClosingParts } from '../../../../crawl-api/callbacks/closing.ts';
import { seededRandom } from '../../../../shared/adapters/random.ts';
import { NO_PROGRESS } from '../../../../shared/wire/callbacks.ts';
import { createKeyPair } from '../../../../shared/wire/signature.ts';
import { fine, refused } from '../crawl-scene.ts';
import { silentLog } from '../fakes.ts';
import { type HostScene, openHostScene, rulesOf } from './host-scene.ts';

const HOUR = 3_600_000;
const pages = (host: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `https://${host}/${i + 1}`);

/** Closes the epoch as the instance does once its results are uploaded; says what of it has been done. */
function close({ queue, clock }: HostScene): { done: string[] } {
  const done: string[] = [];
  const parts: ClosingParts = {
    queue,
    clock,
    owner: { run: 'r', slot: 0, epoch: 1 },
    instanceId: 'i-1',
    privateKey: createKeyPair().privateKey,
    uploader: {
      put: () => {
        done.push('manifest');
        return Promise.resolve(true);
      },
    },
    session: () => Promise.resolve(null),
    client: {
      sendSigned: () => {
        done.push('completion');
        return Promise.resolve({ status: 200, body: '{"ok":true}', authentic: true });
      },
    },
    progress: () => NO_PROGRESS,
    random: seededRandom(1),
    log: silentLog,
  };
  void closeEpoch(parts, new AbortController().signal);
  return { done };
}

describe('an instance that has to give its hosts back', () => {
  it.each([0, 2_000])(
    'sends no request once its crawl has ended (%i ms until a connection stands)',
    async (connectMs) => {
      const scene = await openHostScene({ pagesAtOnce: 4, connectMs, pageMs: 3_000 });
      await scene.give(['a', 'b', 'c', 'd', 'e'].flatMap((name) => pages(`${name}.example`, 3)));
      await scene.run(17_000);
      await scene.follow({ drain: true });
      while (scene.end() === null) await scene.run(100);
      const sent = scene.sent.length;
      await scene.run(HOUR);
      expect(scene.end()).toBe('drained');
      expect(scene.sent).toHaveLength(sent);
    },
  );

  it.each([
    ['a Crawl-delay', { rules: () => rulesOf({ crawlDelayMs: 60_000 }) }, { delayMs: 60_000 }],
    ['a Retry-After', { world: () => refused(429, HOUR) }, { waitMs: expect.any(Number) as number }],
  ])('closes its epoch only when the main server knows of %s that it has just learned', async (_what, world, told) => {
    const scene = await openHostScene({ isMute: true, ...world });
    scene.beat();
    await scene.give(pages('a.example', 3));
    while (scene.queue.state.domains.news.size === 0) await scene.run(100);
    await scene.follow({ drain: true });
    await scene.run(1_000);
    expect(scene.end()).toBe('drained');
    const { done } = close(scene);
    await scene.run(60_000);
    expect(done).toEqual([]);
    expect(scene.beat()).toMatchObject([{ host: 'a.example', ...told }]);
    await scene.run(20_000);
    expect(done).toEqual(['manifest', 'completion']);
  });

  it('closes its epoch at once when there is nothing to tell', async () => {
    const scene = await openHostScene({ world: (url) => fine(url) });
    await scene.give(pages('a.example', 3));
    await scene.run(16_000);
    await scene.follow({ drain: true });
    await scene.run(1_000);
    const { done } = close(scene);
    await scene.run(0);
    expect(done).toEqual(['manifest', 'completion']);
  });
});
