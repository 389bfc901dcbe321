/**
 * F24: after hundreds of pages, memory and processes are what they were after the first ones.
 *
 * @module-tag nightly
 */
import v8 from 'node:v8';
import vm from 'node:vm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectNoZombies, neverAborted, NO_HOOKS, openStage, Site, type Stage, titleOf } from './stage.ts';

const PAGES = 200;
const GENERATION = 50;
const MB = 1_048_576;

v8.setFlagsFromString('--expose-gc');
const collectGarbage = vm.runInNewContext('gc') as () => void;

/** What this process holds: its resident set depends on when garbage was last collected, also that of other files. */
function heldMb(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / MB;
}

let site: Site;
let stage: Stage;

beforeAll(async () => {
  site = await Site.start('127.0.7.17');
  site.pages.set(
    '/p/page',
    `<h1>page</h1><script>globalThis.held = new Array(1e5).fill("x")</script>${'<p>text</p>'.repeat(500)}`,
  );
  stage = await openStage(site, { recycle: { pages: GENERATION } });
});
afterAll(async () => {
  await stage.close();
  await site.stop();
});

it('F24: keeps its memory over 200 pages, and leaves no zombie process', { timeout: 300_000 }, async () => {
  const ownMb: number[] = [];
  const browserMb: number[] = [];
  for (let n = 1; n <= PAGES; n++) {
    expect(titleOf(await stage.source.fetch(`${site.url}/p/page?n=${n}`, NO_HOOKS, neverAborted()))).toBe('page');
    if (n % GENERATION !== GENERATION - 1) continue;
    browserMb.push((await stage.source.start()).memoryBytes() / MB);
    ownMb.push(heldMb());
  }
  // After the last product the browser is replaced in the background.
  expect(stage.source.counts.restarts).toBeGreaterThanOrEqual(PAGES / GENERATION - 1);
  // A browser ends with the memory the first one ended with; this process is compared once it has warmed up.
  expect(Math.max(...browserMb.slice(1))).toBeLessThan(browserMb[0]! * 1.3 + 20);
  expect(ownMb.at(-1)!).toBeLessThan(ownMb[1]! + 10);
  await expectNoZombies();
  expect(stage.profiles().length).toBeLessThanOrEqual(1);
});
