/** `/healthz` on the operator's listener, asked as a monitor asks and as a web page would. */
import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHealthApp, isLoopbackAddress } from '../../../../orchestrator/core/server/health-app.ts';
import { listen, type Listener } from '../../../../orchestrator/core/server/listen.ts';

/** What a browser says of a click on a link of another site. */
const LINK = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

let listener: Listener;
let health: { ok: boolean; problem: string | null };

beforeEach(async () => {
  health = { ok: true, problem: null };
  listener = await listen(
    createHealthApp(() => health, 'ops.example.com'),
    '127.0.0.1:0',
    'server.operator',
  );
});
afterEach(() => listener.close());

function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<[number, unknown]> {
  return new Promise((resolve, reject) => {
    const { port } = listener;
    request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () => resolve([response.statusCode ?? 0, JSON.parse(body)]));
    })
      .on('error', reject)
      .end();
  });
}

describe('/healthz', () => {
  it('answers 200 when all is well and 503 when not, with the reason', async () => {
    expect(await ask('/healthz')).toEqual([200, health]);
    health = { ok: false, problem: 'the last run ended with exit code 4' };
    expect(await ask('/healthz')).toEqual([503, health]);
  });

  it('tells other machines only whether all is well', async () => {
    await listener.close();
    const app = createHealthApp(
      () => health,
      'ops.example.com',
      () => false,
    );
    listener = await listen(app, '127.0.0.1:0', 'server.operator');
    health = { ok: false, problem: 'the last run ended with exit code 4' };
    expect(await ask('/healthz')).toEqual([503, { ok: false }]);
    expect(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'].map(isLoopbackAddress)).not.toContain(false);
    expect(['10.0.0.5', '::ffff:10.0.0.5', 'fe80::1', undefined].map(isLoopbackAddress)).not.toContain(true);
  });

  it('has no other routes and takes nothing', async () => {
    for (const [path, method] of [
      ['/', 'GET'],
      ['/api/runs', 'GET'],
      ['/healthz', 'POST'],
      ['/healthz', 'DELETE'],
    ] as const)
      expect((await ask(path, {}, method))[0]).toBe(404);
  });

  it.each(['localhost:8701', '127.0.0.1', '[::1]:8701', '10.0.0.5:8701', 'ops.example.com:8701'])(
    'may be addressed as %s',
    async (host) => {
      expect((await ask('/healthz', { host }))[0]).toBe(200);
    },
  );

  it.each([
    ['a name that a page lets resolve to us', { host: 'evil.example' }],
    ['a page', { origin: 'https://evil.example' }],
    ['a sandboxed page', { origin: 'null' }],
    ['what the page of another site embeds', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    ['what a page on another port embeds', { 'sec-fetch-site': 'same-site', 'sec-fetch-dest': 'image' }],
    ['a request of another site that says no more', { 'sec-fetch-site': 'cross-site' }],
    ['a frame of another site', { ...LINK, 'sec-fetch-dest': 'iframe' }],
    ['no Host that can be read', { host: '127.0.0.1:port' }],
  ])('refuses %s', async (_what, headers) => {
    expect((await ask('/healthz', headers))[0]).toBe(403);
  });

  it('is opened by a link, wherever it is; data is not', async () => {
    expect((await ask('/healthz', LINK))[0]).toBe(200);
    expect((await ask('/healthz', { 'sec-fetch-site': 'none' }))[0]).toBe(200);
    expect((await ask('/api/runs/x/rows.csv', LINK))[0]).toBe(403);
    expect((await ask('/api/runs', { 'sec-fetch-site': 'same-origin' }))[0]).toBe(404);
  });
});
