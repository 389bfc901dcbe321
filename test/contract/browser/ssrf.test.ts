/** F36: no page, whatever it tries, makes the browser reach anything but public addresses and the configured shop. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { PageAnswer } from '../../../crawl-api/fetch/page-result.ts';
import { neverAborted, NO_HOOKS, openStage, Site, type Stage, titleOf } from './stage.ts';

let site: Site;
/** Stands for everything that must not be reached: another loopback port, which records connections. */
let canary: Site;
let stage: Stage;

beforeAll(async () => {
  site = await Site.start('127.0.7.12');
  canary = await Site.start('127.0.7.13');
  canary.pages.set('/secret', '<h1>secret</h1>');
  stage = await openStage(site, { timeoutMs: 8_000 });
});
afterAll(async () => {
  await stage.close();
  await site.stop();
  await canary.stop();
});

const get = (path: string): Promise<PageAnswer> => stage.source.fetch(site.url + path, NO_HOOKS, neverAborted());

/** The canary's address in all spellings that a page may use, and addresses that a test cannot listen on. */
function targets(): string[] {
  const { port } = new URL(canary.url);
  return [
    `${canary.url}/secret`,
    `http://[::ffff:127.0.7.13]:${port}/secret`,
    `http://2130708237:${port}/secret`,
    `http://localhost:${port}/secret`,
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/latest/meta-data/',
  ];
}

describe('F36: requests that a page makes the browser send', () => {
  it('are refused when the page redirects there', async () => {
    for (const target of targets()) {
      site.pages.set('/p/redirect', (_, response) => response.writeHead(302, { location: target }).end());
      const to = new URL(target).href;
      expect(await get('/p/redirect')).toMatchObject({ kind: 'redirect', to, reply: { status: 302 } });
    }
    expect(canary.connections).toBe(0);
  });

  it.each([
    ['a script changes the location', (target: string) => `<script>location = '${target}'</script>`],
    ['a meta tag refreshes', (target: string) => `<meta http-equiv="refresh" content="0;url=${target}">`],
    [
      'a form is submitted',
      (target: string) => `<form method="post" action="${target}"></form><script>document.forms[0].submit()</script>`,
    ],
  ])('are refused when %s', async (_, render) => {
    for (const target of targets().slice(0, 2)) {
      site.pages.set('/p/leave', render(target));
      const result = await get('/p/leave');
      expect(titleOf(result)).not.toBe('secret');
      expect(JSON.stringify(result)).not.toContain('<h1>secret');
    }
    expect(canary.connections).toBe(0);
  });

  it('are refused from frames, scripts, sockets, workers and windows', async () => {
    site.pages.set('/worker.js', (_, response) => {
      response.setHeader('content-type', 'text/javascript');
      response.end(`fetch('${canary.url}/worker', { mode: 'no-cors' }).catch(() => {})`);
    });
    site.pages.set('/out', (_, response) => response.writeHead(302, { location: `${canary.url}/secret` }).end());
    const attempts = targets().map(
      (target) => `
        frame('${target}');
        fetch('${target}', { mode: 'no-cors' }).catch(() => {});
        navigator.sendBeacon('${target}');
        attempt(() => new WebSocket('${target.replace('http', 'ws')}'));
        attempt(() => new WebSocket('${target.replace('http', 'wss')}'));
        attempt(() => new EventSource('${target}'));
        attempt(() => open('${target}'));
        link('preconnect', '${target}'); link('prefetch', '${target}'); link('stylesheet', '${target}'); link('dns-prefetch', '${target}');
        script('${target}'); image('${target}');
        link('preload', '${target}', 'fetch');`,
    );
    site.pages.set(
      '/p/attempts',
      `<body><script>
        const attempt = (f) => { try { return f() } catch {} };
        const add = (name, props) => document.body.append(Object.assign(document.createElement(name), props));
        const frame = (src) => add('iframe', { src });
        const script = (src) => add('script', { src });
        const image = (src) => add('img', { src });
        const link = (rel, href, as = '') => add('link', { rel, href, as });
        ${attempts.join('')}
        frame('/out'); script('/out'); fetch('/out', { mode: 'no-cors' }).catch(() => {});
        attempt(() => new Worker('/worker.js'));
        attempt(() => navigator.serviceWorker.register('/worker.js'));
        attempt(() => { const c = new RTCPeerConnection({ iceServers: [{ urls: 'stun:${new URL(canary.url).host}' }] }); c.createDataChannel('x'); c.createOffer().then((o) => c.setLocalDescription(o)); });
        setTimeout(() => add('h1', { textContent: 'tried' }), 1000);
      </script>`,
    );
    expect(titleOf(await get('/p/attempts'))).toBe('tried');
    expect(canary.connections).toBe(0);
    expect(site.paths()).toEqual(expect.arrayContaining(['/worker.js', '/out']));
  });

  it('would succeed without the guard: the tests above can fail', { tags: ['nightly'] }, async () => {
    const open = await openStage(site, { guard: { checkHost: () => null, checkResolved: () => null } });
    try {
      const before = canary.connections;
      const result = await open.source.fetch(`${site.url}/p/attempts`, NO_HOOKS, neverAborted());
      expect(titleOf(result)).toBe('tried');
      expect(canary.connections).toBeGreaterThan(before);
    } finally {
      await open.close();
    }
  });

  it('reach nothing after the product is done', async () => {
    site.pages.set('/late', 'late');
    site.pages.set('/p/late', '<h1>done</h1><script>setInterval(() => fetch("/late?" + Math.random()), 5)</script>');
    expect(titleOf(await get('/p/late'))).toBe('done');
    const before = site.hits.length;
    // The page tries every 5 ms; only a short wait can show that nothing arrives.
    await systemClock.sleep(200);
    const since = site.paths().slice(before);
    // Each open connection to the site may have carried one already; without the gate there would be about forty.
    expect(since.length).toBeLessThanOrEqual(6);
  });
});
