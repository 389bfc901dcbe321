/** Every kind of refusal over HTTP, by address; and the count of the requests after it. */
import { describe, expect, it } from 'vitest';
import type { BehaviourInput } from '../../support/shop/behaviour-schema.ts';
import { useShop } from './shop-stage.ts';

const stage = useShop();
const BAD = '127.0.6.1';
const GOOD = '127.0.6.2';

describe('a banned address', () => {
  const shapes: [string, BehaviourInput, number, string | RegExp][] = [
    ['403', { type: 'status', status: 403 }, 403, '<h1>403</h1>'],
    ['404', { type: 'status', status: 404 }, 404, '<h1>404</h1>'],
    ['999', { type: 'status', status: 999 }, 999, '<h1>999</h1>'],
    ['a redirect', { type: 'redirect', to: '/verify' }, 302, '<h1>302</h1>'],
    ['one line of script', { type: 'one-line-script' }, 200, /^<script>location\.href=[^\n]*<\/script>$/],
    ['a shell of script', { type: 'script-shell' }, 200, '<body></body>'],
    ['a captcha', { type: 'captcha', status: 403 }, 403, 'not a robot'],
    ['a log-in page', { type: 'login' }, 200, 'type="password"'],
  ];
  it.each(shapes)('gets %s, and no other address does', async (_, answer, status, text) => {
    await stage.shop.ban({ addresses: [BAD], answer, forMs: null });
    const refused = await stage.visitFrom(BAD, 'P00001');
    expect(refused.status).toBe(status);
    expect(refused.body).toMatch(text);
    expect(refused.body).not.toContain('class="product"');
    const welcome = await stage.visitFrom(GOOD, 'P00001');
    expect(welcome.body).toContain('class="product"');
    expect((await stage.shop.stats()).bans).toMatchObject({ [BAD]: { bans: 1, refused: 1 } });
  });

  it('is refused before any rule for the product applies', async () => {
    await stage.shop.setRules([{ id: 'P00001', times: 1, do: { type: 'status', status: 500 } }]);
    await stage.shop.ban({ addresses: [BAD], answer: { type: 'login' }, forMs: null });
    expect((await stage.visitFrom(BAD, 'P00001')).status).toBe(200);
    await stage.shop.unban('all');
    expect((await stage.visitFrom(BAD, 'P00001')).status).toBe(500);
  });

  it('gets the page it is redirected to, and that counts as hammering', async () => {
    await stage.shop.ban({ addresses: 'all', answer: { type: 'redirect', to: '/verify' }, forMs: null });
    const response = await fetch(`${stage.shop.url}/item/P00001`);
    expect(response.url).toBe(`${stage.shop.url}/verify`);
    expect(await response.text()).toContain('not a robot');
    expect((await stage.shop.stats()).bans['127.0.0.1']).toMatchObject({ bans: 1, refused: 2, mostRefused: 2 });
  });
});

describe('limits', () => {
  it('ban the address that exceeds them, with Retry-After', async () => {
    const answer = { type: 'status', status: 429, retryAfter: '36000' } as const;
    await stage.shop.setBanPolicies([{ when: { request: 2 }, coolDownMs: null, answer }]);
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) statuses.push((await stage.visitFrom(BAD, 'P00001')).status);
    expect(statuses).toEqual([200, 429, 429]);
    expect((await stage.visitFrom(GOOD, 'P00001')).status).toBe(200);
  });

  it('are reset', async () => {
    await stage.shop.setBanPolicies([{ when: { request: 1 }, coolDownMs: null, answer: { type: 'login' } }]);
    await stage.shop.reset();
    expect((await stage.visitFrom(BAD, 'P00001')).body).toContain('class="product"');
    expect((await stage.shop.stats()).bans).toEqual({});
  });

  it('are validated', async () => {
    const wrong = { when: { request: 0 }, coolDownMs: null, answer: { type: 'login' } } as const;
    await expect(stage.shop.setBanPolicies([wrong])).rejects.toThrow('refuses POST ban-policies');
  });
});
