import { expect, it } from 'vitest';
import { maskSecrets } from '../../../../orchestrator/core/read/mask-secrets.ts';

it('masks tokens, passwords, and secrets in URLs, and nothing else', () => {
  const settings = {
    site: {
      productUrl: 'https://user:pass@shop.example/{id}?api_key=abc&lang=en',
      intervalMs: 5_000,
      keepCookies: false,
    },
    hosts: [{ url: 'https://b.example/?x=1&access_token=abc#top', weight: 2 }],
    mapping: { rows: { key: ['sku'] }, fields: { title: 'h1' } },
    sandbox: { pid: 1, controlToken: 'abc', dataDir: '/data/token', endpoint: 'http://127.0.0.1:1' },
    results: { guard: null },
    password: 'abc',
  };
  expect(maskSecrets(settings)).toEqual({
    ...settings,
    site: { ...settings.site, productUrl: 'https://***@shop.example/{id}?api_key=***&lang=en' },
    hosts: [{ url: 'https://b.example/?x=1&access_token=***#top', weight: 2 }],
    sandbox: { ...settings.sandbox, controlToken: '***' },
    password: '***',
  });
});
