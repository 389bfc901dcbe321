import { expect, it } from 'vitest';
import { SiteTraffic } from '../../../crawl-api/fetch/browser/site-traffic.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const sent = (requestId: string, url: string, type = 'Fetch') => ({ requestId, request: { url }, type });

it('is quiet from the end of the last script or request for data of the same site', async () => {
  const clock = new VirtualClock();
  const traffic = new SiteTraffic(clock);
  traffic.started(sent('0', 'https://shop.example/early'));
  traffic.open('https://www.shop.example/item/1');
  for (const [url, type] of [
    ['https://tracker.example/t', 'XHR'],
    ['https://shop.example/style.css', 'Stylesheet'],
    ['https://shop.example/item/2', 'Document'],
    ['https://shop.example/beacon', 'Ping'],
  ] as const)
    traffic.started(sent(url, url, type));
  expect(traffic).toMatchObject({ hasAny: false });
  expect(traffic.quietForMs()).toBe(Infinity);

  traffic.started(sent('1', 'https://shop.example/app.js', 'Script'));
  traffic.started(sent('2', 'https://api.shop.example/price'));
  traffic.started(sent('2', 'https://api.shop.example/moved'));
  traffic.ended('1');
  expect(traffic).toMatchObject({ hasAny: true });
  expect(traffic.quietForMs()).toBe(0);
  traffic.ended('2');
  await clock.advance(150);
  traffic.ended('2');
  expect(traffic.quietForMs()).toBe(150);

  traffic.started(sent('3', 'https://shop.example/never'));
  traffic.open('https://shop.example/item/2');
  traffic.ended('3');
  expect(traffic).toMatchObject({ hasAny: false });
  expect(traffic.quietForMs()).toBe(Infinity);
});
