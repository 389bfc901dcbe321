/** How a real browser renders the pages made for browsers. */
import type { Browser, Page } from 'playwright';
import { chromium } from 'playwright';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { waitFor } from '../../support/processes.ts';
import { startCanary } from '../../support/shop/canary.ts';
import { LURE_NAMES } from '../../support/shop/behaviours/outward.ts';
import { expectedRow } from '../../support/shop/product.ts';
import { SEED, useShop } from './shop-stage.ts';

const stage = useShop();
let browser: Browser;

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: inject('chromiumPath'),
    chromiumSandbox: process.getuid?.() !== 0,
  });
});
afterAll(() => browser.close());

async function withPage<T>(use: (page: Page) => Promise<T>): Promise<T> {
  const page = await browser.newPage();
  try {
    return await use(page);
  } finally {
    await page.close();
  }
}

describe('pages that scripts build', () => {
  it.each(['js-x', 'jsfetch-x'])('%s has nothing in its source and everything in the browser', async (id) => {
    const row = expectedRow(SEED, id);
    expect(await (await stage.get(id)).text()).not.toContain('<h1');
    await stage.shop.reset();
    await withPage(async (page) => {
      await page.goto(`${stage.shop.url}/item/${id}`);
      await page.waitForSelector('h1');
      expect((await page.textContent('h1'))?.trim()).toBe(row.title);
      expect(await page.getAttribute('.product .price', 'data-value')).toBe(String(row.price));
      expect(await page.locator('nav.breadcrumbs li').allTextContents()).toEqual(row.crumbs);
      const jsonLd = await page.textContent('script[type="application/ld+json"]');
      expect(JSON.parse(jsonLd ?? '')).toMatchObject({ brand: { name: row.brand } });
    });
    expect(await stage.shop.stats()).toMatchObject({ requests: 1, dataRequests: id === 'js-x' ? 0 : 1 });
  });

  it('tempts the browser to fetch pictures, fonts and films', async () => {
    await withPage((page) => page.goto(`${stage.shop.url}/item/assets-x`));
    await waitFor(async () => Object.keys((await stage.shop.stats()).assets).length >= 5, { what: 'the assets' });
    const { assets, requests } = await stage.shop.stats();
    expect(Object.keys(assets)).toEqual(expect.arrayContaining(['/img/first.jpg', '/media/film.mp4']));
    expect(requests).toBe(1);
  });
});

describe('pages that lead astray', () => {
  // WebRTC uses UDP, which the canary does not receive.
  it.each(LURE_NAMES.filter((name) => name !== 'webrtc'))(
    '%s makes an unguarded browser visit the canary',
    async (how) => {
      const canary = await startCanary();
      try {
        await stage.shop.setRules([{ id: 'P00001', do: { type: 'lure', how, to: canary.url } }]);
        await withPage(async (page) => {
          await page.goto(`${stage.shop.url}/item/P00001`).catch(() => undefined);
          await waitFor(() => canary.visits().length > 0, { what: `the visit by ${how}`, timeoutMs: 10_000 });
        });
      } finally {
        await canary.stop();
      }
    },
  );
});
