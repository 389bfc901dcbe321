/** The shop's baits work on a browser that nothing guards: the tests that expect no visit can fail. */
import type { Browser } from 'playwright';
import { chromium } from 'playwright';
import { afterAll, beforeAll, beforeEach, expect, inject, it } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import { startCanary } from '../../support/shop/canary.ts';
import { LURE_NAMES } from '../../support/shop/behaviours/outward.ts';
import type { Shop } from '../../support/shop/start-shop.ts';
import { startShop } from '../../support/shop/start-shop.ts';

let shop: Shop;
let browser: Browser;

beforeAll(async () => {
  shop = await startShop({ products: 10, seed: 3 });
  browser = await chromium.launch({
    executablePath: inject('chromiumPath'),
    chromiumSandbox: process.getuid?.() !== 0,
  });
});
afterAll(async () => {
  await browser?.close();
  await shop?.stop();
});
beforeEach(() => shop.reset());

async function visit(id: string): Promise<AsyncDisposable> {
  const page = await browser.newPage();
  await page.goto(`${shop.url}/item/${id}`).catch(() => undefined);
  return { [Symbol.asyncDispose]: () => page.close() };
}

it('a page with pictures, fonts and films makes it fetch them', async () => {
  await using _ = await visit('assets-x');
  await waitFor(async () => Object.keys((await shop.stats()).assets).length >= 5, { what: 'the assets' });
  const { assets, requests } = await shop.stats();
  expect(Object.keys(assets)).toEqual(expect.arrayContaining(['/img/first.jpg', '/media/film.mp4']));
  expect(requests).toBe(1);
});

// WebRTC uses UDP, which the canary does not receive.
it.each(LURE_NAMES.filter((name) => name !== 'webrtc'))('%s makes it visit the canary', async (how) => {
  const canary = await startCanary();
  try {
    await shop.setRules([{ id: 'P00001', do: { type: 'lure', how, to: canary.url } }]);
    await using _ = await visit('P00001');
    await waitFor(() => canary.visits().length > 0, { what: `the visit by ${how}`, timeoutMs: 10_000 });
  } finally {
    await canary.stop();
  }
});
