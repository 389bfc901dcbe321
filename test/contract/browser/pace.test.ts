/** What a page's scripts still do must never be taken for the start of the next product. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { neverAborted, openStage, Site, type Stage, titleOf } from './stage.ts';

let site: Site;
let stage: Stage;

beforeAll(async () => {
  site = await Site.start('127.0.7.16');
  site.pages.set('/late', 'late');
  site.pages.set('/worker.js', (_, response) => {
    response.setHeader('content-type', 'text/javascript');
    response.end('setInterval(() => fetch("/late?worker" + Math.random()).catch(() => {}), 2)');
  });
  site.pages.set(
    '/p/busy',
    '<h1>busy</h1><script>setInterval(() => fetch("/late?" + Math.random()).catch(() => {}), 2); new Worker("/worker.js")</script>',
  );
  site.pages.set('/p/next', '<h1>next</h1>');
});
afterAll(() => site.stop());
afterEach(() => stage.close());

describe('two products one after the other', () => {
  const visitInTurns = async (pauseMs: number): Promise<void> => {
    starts.length = 0;
    stage = await openStage(site);
    for (let round = 0; round < 5; round++) {
      expect(titleOf(await stage.source.fetch(`${site.url}/p/busy`, hooksAt('/p/busy'), neverAborted()))).toBe('busy');
      // The pause is what is tested: it gives the last product's page time for whatever it can still do.
      await systemClock.sleep(pauseMs);
      expect(titleOf(await stage.source.fetch(`${site.url}/p/next`, hooksAt('/p/next'), neverAborted()))).toBe('next');
      expect(starts.splice(0)).toEqual(['/p/busy', '/p/next']);
    }
  };

  it('begin with their own pages, one at once after the other', { tags: ['nightly'] }, () => visitInTurns(0));

  it('begin with their own pages, with a pause between them', { tags: ['nightly'] }, () => visitInTurns(60));
});

/** The first request to the site after each start. */
const starts: string[] = [];

function hooksAt(path: string) {
  let hits = 0;
  return {
    onStart: () => void (hits = site.hits.length),
    onFirstByte() {
      // Replies follow requests, so the site has logged the first request by then.
      starts.push(site.hits[hits]?.path ?? `nothing instead of ${path}`);
    },
  };
}
