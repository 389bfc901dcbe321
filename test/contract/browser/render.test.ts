/** The result of rendering a page. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PageAnswer } from '../../../crawl-api/fetch/page-result.ts';
import { LOCAL_ADDRESS, neverAborted, NO_HOOKS, openStage, Site, type Stage, titleOf, USER_AGENT } from './stage.ts';

let site: Site;
let stage: Stage;

beforeAll(async () => {
  site = await Site.start('127.0.7.10');
  stage = await openStage(site);
});
afterAll(async () => {
  await stage.close();
  await site.stop();
});

const get = (path: string): Promise<PageAnswer> => stage.source.fetch(site.url + path, NO_HOOKS, neverAborted());

describe('the browser source', () => {
  it('reads a page that a script builds, from its own address and with its User-Agent', async () => {
    site.pages.set(
      '/p/script',
      '<body><script>setTimeout(() => { document.body.innerHTML = "<h1>built</h1>" }, 60)</script>',
    );
    const result = await get('/p/script');
    expect(titleOf(result)).toBe('built');
    expect(result).toMatchObject({ reply: { url: `${site.url}/p/script`, status: 200, complete: true } });
    expect(site.hits.at(-1)).toEqual({ path: '/p/script', from: LOCAL_ADDRESS, userAgent: USER_AGENT });
  });

  it('reads a page built from what a script fetches', async () => {
    site.pages.set('/api', (_, response) => response.end('fetched'));
    site.pages.set(
      '/p/fetch',
      '<body><script>fetch("/api").then((r) => r.text()).then((t) => { document.body.innerHTML = `<h1>${t}</h1>` })</script>',
    );
    expect(titleOf(await get('/p/fetch'))).toBe('fetched');
  });

  it('never requests images, fonts and media', async () => {
    site.pages.set('/style.css', (_, response) => {
      response.setHeader('content-type', 'text/css');
      response.end(
        `@font-face { font-family: f; src: url(/font.woff2) } h1 { font-family: f; background: url(/back.png);
         border-image: url(/border.png); mask-image: url(/mask.png); list-style-image: url(/list.png); cursor: url(/hand.ico), auto }
         h1::before { content: url(/before.webp) }`,
      );
    });
    site.pages.set(
      '/p/assets',
      `<link rel="stylesheet" href="/style.css"><link rel="icon" href="/icon.ico"><link rel="preload" as="image" href="/early.avif">
       <img src="/a.png"><img src="/b.jpg?v=1"><img src="/picture"><img srcset="/c.png 1x, /d.png 2x" loading="eager">
       <img src="/vector.svg"><svg><image href="/e.png" width="9" height="9"/><use href="/sprite.svg#s"/></svg><input type="image" src="/f.gif">
       <picture><source srcset="/g.avif" type="image/avif"><img src="/g.png"></picture><table background="/h.png"><tr><td>1</table>
       <video src="/film.mp4" poster="/poster.jpg" autoplay></video><audio src="/sound.ogg" autoplay></audio><h1 id="t"></h1>
       <script>new Image().src = "/i.png"; addEventListener("load", () => setTimeout(() => { t.textContent = "loaded" }, 200))</script>`,
    );
    const before = site.hits.length;
    expect(titleOf(await get('/p/assets'))).toBe('loaded');
    expect(site.paths().slice(before)).toEqual(['/p/assets', '/style.css']);
  });

  it.each(['/p/item.png', '/p/item.mp4?x=1', '/p/item.svg#top'])('reads a product whose URL is %s', async (path) => {
    site.pages.set(new URL(path, site.url).pathname, '<h1>picture</h1><img src="/other.png">');
    const before = site.hits.length;
    expect(titleOf(await get(path))).toBe('picture');
    expect(site.paths().slice(before)).not.toContain('/other.png');
  });

  it('reports the start when the request is about to be sent, then the first byte', async () => {
    const events: string[] = [];
    site.pages.set('/p/order', (_, response) => {
      events.push('arrived');
      response.setHeader('content-type', 'text/html');
      response.end('<h1>order</h1>');
    });
    const hooks = { onStart: () => void events.push('start'), onFirstByte: () => void events.push('first byte') };
    expect(titleOf(await stage.source.fetch(`${site.url}/p/order`, hooks, neverAborted()))).toBe('order');
    expect(events).toEqual(['start', 'arrived', 'first byte']);
  });

  it('sends nothing when onStart throws, and rejects with the same error', async () => {
    const before = site.hits.length;
    const hooks = {
      onStart() {
        throw new Error('not yet');
      },
      onFirstByte() {},
    };
    await expect(stage.source.fetch(`${site.url}/p/order`, hooks, neverAborted())).rejects.toThrow('not yet');
    expect(site.hits.length).toBe(before);
    expect(titleOf(await get('/p/script'))).toBe('built');
  });

  it.each([404, 410])('reports status %i as gone', async (status) => {
    site.pages.set('/p/gone', (_, response) =>
      response.writeHead(status, { 'content-type': 'text/html' }).end('<p>gone</p>'),
    );
    expect(await get('/p/gone')).toMatchObject({ kind: 'gone', reply: { status } });
  });

  it.each([403, 429, 500, 503])('returns status %i with the text of its page', async (status) => {
    site.pages.set('/p/error', (_, response) =>
      response.writeHead(status, { 'content-type': 'text/html', 'retry-after': '7' }).end('<p>go away</p>'),
    );
    const result = await get('/p/error');
    expect(result).toMatchObject({
      kind: 'failed',
      reason: 'http-status',
      reply: { status, headers: { 'retry-after': '7' } },
    });
    expect(result).toMatchObject({ reply: { body: expect.stringContaining('go away') } });
    expect(result).toMatchObject({ retryAfterMs: status === 429 || status === 503 ? 7_000 : null });
  });

  it.each(['/p/script', '/p/old'])(
    'reports a redirect to %s and does not follow it: that is a request of its own',
    async (to) => {
      site.pages.set('/p/old', (_, response) => response.writeHead(302, { location: to }).end());
      expect(await get('/p/old')).toMatchObject({
        kind: 'redirect',
        to: `${site.url}${to}`,
        reply: { url: `${site.url}/p/old`, status: 302 },
      });
    },
  );

  it.each([
    ['application/pdf', '%PDF-1.7'],
    ['video/mp4', 'x'],
    ['application/zip', 'PK'],
    ['text/csv', 'a,b'],
  ])('refuses %s', async (type, body) => {
    site.pages.set('/p/other', (_, response) => response.writeHead(200, { 'content-type': type }).end(body));
    expect(await get('/p/other')).toMatchObject({ kind: 'failed', reason: 'content-type', reply: { status: 200 } });
  });

  it('refuses a download', async () => {
    site.pages.set('/p/file', (_, response) =>
      response.writeHead(200, { 'content-type': 'text/html', 'content-disposition': 'attachment' }).end('<h1>x</h1>'),
    );
    expect(await get('/p/file')).toMatchObject({ kind: 'failed', reason: 'content-type' });
  });

  it('reads JSON unchanged', async () => {
    site.pages.set('/p/json', (_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"title":"data"}'),
    );
    expect(titleOf(await get('/p/json'))).toBe('data');
  });

  it('returns a page without required fields as it is, once nothing changes any more', async () => {
    site.pages.set('/p/empty', '<p>nothing here</p>');
    expect(titleOf(await get('/p/empty'))).toBe(null);
  });

  it('returns an empty page for an empty reply', async () => {
    site.pages.set('/p/204', (_, response) => response.writeHead(204).end());
    expect(await get('/p/204')).toMatchObject({ kind: 'page', reply: { status: 204 } });
  });

  it('ignores dialogs and windows', async () => {
    site.pages.set(
      '/p/noise',
      '<body><script>alert(1); confirm(2); open("/p/popup"); onbeforeunload = () => "stay"; document.body.innerHTML = "<h1>still</h1>"</script>',
    );
    expect(titleOf(await get('/p/noise'))).toBe('still');
    expect(titleOf(await get('/p/script'))).toBe('built');
  });

  it('explains why there is no reply', async () => {
    site.pages.set('/p/cut', (request) => request.socket.destroy());
    expect(await get('/p/cut')).toMatchObject({
      kind: 'failed',
      reason: 'network',
      detail: expect.stringMatching(/socket|ECONNRESET/),
    });
  });

  it('stops when aborted', async () => {
    const stop = new AbortController();
    site.pages.set('/p/never', () => stop.abort());
    expect(await stage.source.fetch(`${site.url}/p/never`, NO_HOOKS, stop.signal)).toEqual({ kind: 'not-now' });
  });

  it('refuses a URL that is not http', async () => {
    expect(await stage.source.fetch('file:///etc/passwd', NO_HOOKS, neverAborted())).toMatchObject({ kind: 'failed' });
  });
});
