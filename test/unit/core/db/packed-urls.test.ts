import { describe, expect, it } from 'vitest';
import { PackedUrls } from '../../../../orchestrator/core/db/packed-urls.ts';

/** As long as URLs may be, so that they fill several slabs. */
const urlOf = (i: number): string => `https://host-${i}.example/${'x'.repeat((i * 37) % 1_950)}`;

describe('URLs outside of the heap', () => {
  it('are those that were added, by their IDs', () => {
    const urls = new PackedUrls();
    const ids = Array.from({ length: 70_000 }, (_, i) => `商品 ${i}`);
    ids.forEach((id, i) => urls.add(id, urlOf(i)));
    expect(urls.length).toBe(70_000);
    expect([...urls]).toEqual(ids);
    expect(urls.slice(1_000, 1_002)).toEqual(['商品 1000', '商品 1001']);
    expect([urls.at(69_999), urls.at(70_000)]).toEqual(['商品 69999', undefined]);
    expect(ids.filter((id, i) => urls.get(id) !== urlOf(i))).toEqual([]);
    expect([urls.has('商品 7'), urls.has('商品'), urls.get('商品')]).toEqual([true, false, undefined]);
  });

  it('are whole for more origins than are kept apart, with several for an origin, and without any', () => {
    const urls = new PackedUrls();
    const added = Array.from({ length: 110_000 }, (_, i) => `https://host-${i}.example/first`);
    added.push('https://host-0.example:8443/', 'https://host-0.example/second', 'https://host-109999.example/second');
    added.push('about:blank', 'denied:https://host-0.example/');
    added.forEach((url, i) => urls.add(`id-${i}`, url));
    expect(added.filter((url, i) => urls.get(`id-${i}`) !== url)).toEqual([]);
  });
});
