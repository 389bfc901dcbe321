import { describe, expect, it } from 'vitest';
import { knowsProxies, proxyOf } from '../../../../shared/adapters/proxy.ts';

describe('proxyOf', () => {
  it('takes the proxy for HTTPS and the hosts without it from the environment, and nothing else', () => {
    const environment = {
      HTTPS_PROXY: 'http://proxy:3128',
      no_proxy: '.internal',
      HTTP_PROXY: 'http://x',
      PATH: '/bin',
    };
    expect(proxyOf(environment)).toEqual({ HTTPS_PROXY: 'http://proxy:3128', no_proxy: '.internal' });
  });

  it.each([{}, { HTTPS_PROXY: '' }, { HTTP_PROXY: 'http://proxy:3128' }, { NO_PROXY: '*' }])(
    'is none in %j',
    (environment) => {
      expect(proxyOf(environment)).toBeUndefined();
    },
  );
});

it.each([
  ['22.19.0', false],
  ['22.21.0', true],
  ['23.11.0', false],
  ['24.4.1', false],
  ['24.5.0', true],
  ['26.0.0', true],
])('Node %s knows proxies: %s', (version, expected) => {
  expect(knowsProxies(version)).toBe(expected);
});
