/** robots.txt: its text, its faults, and that requests for it are counted separately. */
import { describe, expect, it } from 'vitest';
import { useShop } from './shop-stage.ts';

const stage = useShop();
const robots = (): Promise<Response> => fetch(`${stage.shop.url}/robots.txt`, { redirect: 'manual' });

describe('robots.txt', () => {
  it('is missing until it is set, and again after a reset', async () => {
    expect((await robots()).status).toBe(404);
    await stage.shop.setRobots({ text: 'User-agent: *\nDisallow: /item/P0\n' });
    const response = await robots();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(await response.text()).toBe('User-agent: *\nDisallow: /item/P0\n');
    await stage.shop.setRobots(null);
    expect((await robots()).status).toBe(404);
  });

  it('fails, redirects, grows and hangs as configured', async () => {
    await stage.shop.setRobots({ status: 503 });
    expect((await robots()).status).toBe(503);
    await stage.shop.setRobots({ status: 301, location: '/other.txt' });
    expect((await robots()).headers.get('location')).toBe('/other.txt');
    await stage.shop.setRobots({ paddingBytes: 2_000_000, text: 'Disallow: /\n' });
    const body = await (await robots()).text();
    expect(body.length).toBeGreaterThan(2_000_000);
    expect(body.endsWith('Disallow: /\n')).toBe(true);
    await stage.shop.setRobots({ hang: true });
    const asked = fetch(`${stage.shop.url}/robots.txt`, { signal: AbortSignal.timeout(100) });
    await expect(asked).rejects.toThrow('timeout');
  });

  it('is logged, and does not count as a request for a page', async () => {
    await (await robots()).text();
    await (await stage.get('P00001')).text();
    await (await robots()).text();
    const stats = await stage.shop.stats();
    expect(stats).toMatchObject({ requests: 1, minGapMs: null, robotsRequests: 2 });
    expect(stats.addresses['127.0.0.1']?.requests).toBe(1);
    expect((await stage.shop.log()).map((entry) => entry.kind)).toEqual(['robots', 'page', 'robots']);
  });
});
