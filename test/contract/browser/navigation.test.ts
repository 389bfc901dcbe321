/** One navigation per visit: a redirect by the page is reported, judged and paced, and never followed directly. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PageAnswer, PageSource } from '../../../crawl-api/fetch/page-result.ts';
import type { SeenPage } from '../../../crawl-api/politeness/judgement.ts';
import { judge } from '../../../crawl-api/politeness/ban-rules.ts';
import { RenderChoice } from '../../../crawl-api/politeness/render-choice.ts';
import { Pacer, PageTimes } from '../../../crawl-api/politeness/pacer.ts';
import { Places } from '../../../crawl-api/politeness/places.ts';
import { SignalFlag } from '../../../crawl-api/process/signal-flag.ts';
import { siteDomain } from '../../../crawl-api/queue/domain-policy.ts';
import { Pages } from '../../../crawl-api/queue/pages.ts';
import { CookieJar } from '../../../shared/adapters/http/cookie-jar.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { createQueue } from '../../unit/crawl-api/fakes.ts';
import { compileFollowRules } from '../../../crawl-api/politeness/follow-rules.ts';
import { compileSiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import { neverAborted, NO_HOOKS, openStage, Site, type Stage, titleOf } from './stage.ts';
import { oneTitle } from '../../support/one-title.ts';

let site: Site;
let stage: Stage;

beforeAll(async () => {
  site = await Site.start('127.0.7.18');
  stage = await openStage(site);
  site.pages.set('/p/good', '<h1>good</h1>');
});
afterAll(async () => {
  // A busy machine may take longer than the time limit for clearing a page; the browser is then replaced, as it should
  // be.
  expect(stage.problems.filter((problem) => !problem.startsWith('clearing the page'))).toEqual([]);
  await stage.close();
  await site.stop();
});

const get = (path: string): Promise<PageAnswer> => stage.source.fetch(site.url + path, NO_HOOKS, neverAborted());

/** Longer than the text of a ban page. */
const NOTICE =
  'This product has a new page with a better picture and all its colours. You will be taken there in a moment; if nothing happens, please follow the link below.';

/** The requests that the site received during one visit. */
async function visit(path: string): Promise<{ result: PageAnswer; asked: string[] }> {
  const before = site.hits.length;
  const result = await get(path);
  // The next page starts after the last one has been cleared: whatever that could still do is done by then.
  expect(titleOf(await get('/p/good'))).toBe('good');
  return { result, asked: site.paths().slice(before, -1) };
}

async function judgementOf(result: PageAnswer, path: string) {
  const rules = await compileSiteRules({ statuses: [], redirects: [], patterns: [] }, true);
  const { kind, rule } = judge(
    result as SeenPage,
    { url: site.url + path, product: { id: 'P1', url: site.url + path } },
    rules,
  );
  return { kind, rule };
}

async function pagesOf(browser: PageSource, cookies: CookieJar | null): Promise<Pages> {
  const settings = oneTitle(`${site.url}/p/{id}`).site;
  const { queue } = createQueue();
  const follow = await compileFollowRules({ site: settings });
  return new Pages({
    queue,
    domain: 0,
    policy: siteDomain({ queue, clock: systemClock, site: settings, follow, domain: 0, isOneOfMany: false }),
    places: new Places(1),
    pacer: new Pacer(systemClock, () => 0, false),
    clock: systemClock,
    pageTimes: new PageTimes(),
    site: settings,
    follow,
    rules: await compileSiteRules({ statuses: [], redirects: [], patterns: [] }, true),
    render: new RenderChoice('browser'),
    http: browser,
    browser,
    cookies,
    changed: new SignalFlag(),
  });
}

describe('cookies', () => {
  const sent: string[] = [];
  const fetch = async (pages: Pages, path: string) => {
    sent.length = 0;
    const url = site.url + path;
    return pages.fetch({ n: 0, url, product: { id: 'P1', url }, interruptible: false }, neverAborted());
  };

  beforeAll(() => {
    site.pages.set('/p/gate', ({ headers: { cookie = '' } }, response) => {
      sent.push(cookie);
      if (cookie.includes('s=1'))
        response.end('<h1>inside</h1><script>document.cookie = "script=\\u00fc; path=/"</script>');
      else response.writeHead(302, { location: '/p/gate', 'set-cookie': ['s=1; HttpOnly', 'gone=1; Path=/'] }).end();
    });
    site.pages.set('/p/ban', ({ headers: { cookie = '' } }, response) => {
      sent.push(cookie);
      response.writeHead(403, { 'set-cookie': ['s=banned; Path=/p', 'blocked=1'] }).end('no');
    });
  });

  it('of the browser and of the jar are the same', async () => {
    const jar = new CookieJar(systemClock);
    const pages = await pagesOf(stage.source, jar);
    const url = `${site.url}/p/gate`;
    expect(await fetch(pages, '/p/gate')).toMatchObject({ judgement: { kind: 'right' } });
    expect(sent).toEqual(['', 's=1; gone=1']);
    expect(jar.names(url).toSorted()).toEqual(['gone', 's', 'script']);
    // What HTTP gets counts in the browser, too.
    jar.keep(url, ['http=2', 'gone=; Path=/; Max-Age=0']);
    await fetch(pages, '/p/gate');
    expect(sent.map((cookie) => cookie.split('; ').toSorted())).toEqual([['http=2', 's=1', 'script=\u00c3\u00bc']]);
    expect(await fetch(pages, '/p/ban')).toMatchObject({ judgement: { rule: 'status-403' } });
    await fetch(pages, '/p/ban');
    expect(sent.map((cookie) => cookie.split('; ').toSorted())).toEqual([['http=2', 's=1', 'script=\u00c3\u00bc']]);
    jar.clear();
    await fetch(pages, '/p/ban');
    expect(sent).toEqual(['']);
  });

  it('that may not be kept are not sent with the next page', async () => {
    const pages = await pagesOf(stage.source, null);
    for (let i = 0; i < 2; i++) {
      const fetched = await fetch(pages, '/p/gate');
      expect(fetched).toMatchObject({ judgement: { rule: 'redirect-loop', evidence: { cookie: 's' } } });
      expect(sent).toEqual(['']);
    }
  });
});

describe('F28: a ban page that leads elsewhere', () => {
  it.each([
    ['reload', '<script>document.cookie="k=1";location.reload()</script>', '/p/ban'],
    ['reload again and again', '<script>setInterval(() => location.reload(), 1)</script>', '/p/ban'],
    ['location.href', '<script>location.href="/c?u="+encodeURIComponent(location.href)</script>', '/c'],
    ['a script that empties the page first', '<script>document.body?.remove();location.replace("/c")</script>', '/c'],
    ['meta refresh', '<meta http-equiv="refresh" content="0;url=/c">', '/c'],
    ['a form', '<form method="post" action="/c"></form><script>document.forms[0].submit()</script>', '/c'],
  ])('%s: costs one request, and is recognized as a ban page', async (_, body, target) => {
    site.pages.set('/p/ban', body);
    site.pages.set('/c', body);
    const { result, asked } = await visit('/p/ban');
    expect(asked).toEqual(['/p/ban']);
    expect(result).toMatchObject({ kind: 'redirect', reply: { url: `${site.url}/p/ban`, status: 200, body } });
    expect(result.kind === 'redirect' && new URL(result.to).pathname).toBe(target);
    expect(await judgementOf(result, '/p/ban')).toEqual({ kind: 'refusal', rule: 'script-shell' });
  });

  it('costs one request, too, where the site redirects to it', async () => {
    site.pages.set('/p/ban', (_, response) => response.writeHead(302, { location: '/c' }).end());
    site.pages.set('/c', '<script>location.reload()</script>');
    const { result, asked } = await visit('/p/ban');
    expect(asked).toEqual(['/p/ban']);
    expect(result).toMatchObject({ kind: 'redirect', to: `${site.url}/c` });
  });
});

describe('a page that leads elsewhere', () => {
  it('by script to the product is reported as a hop', async () => {
    site.pages.set('/p/moved', `<p>${NOTICE}</p><script>location.replace("/p/good?from=moved")</script>`);
    const { result, asked } = await visit('/p/moved');
    expect(asked).toEqual(['/p/moved']);
    expect(result).toMatchObject({ kind: 'redirect', to: `${site.url}/p/good?from=moved` });
    expect(await judgementOf(result, '/p/moved')).toEqual({ kind: 'hop', rule: null });
  });

  it('by script to the product is followed as a request of its own', async () => {
    site.pages.set('/p/moved', `<p>${NOTICE}</p><script>location.replace("/p/good")</script>`);
    const sent: string[] = [];
    const browser: PageSource = {
      fetch(url, hooks, signal) {
        sent.push(new URL(url).pathname);
        return stage.source.fetch(url, hooks, signal);
      },
      close: () => Promise.resolve(),
    };
    const pages = await pagesOf(browser, null);
    const url = `${site.url}/p/moved`;
    const fetched = await pages.fetch({ n: 0, url, product: { id: 'P1', url }, interruptible: false }, neverAborted());
    expect(fetched).toMatchObject({ kind: 'judged', url: `${site.url}/p/good`, judgement: { kind: 'right' } });
    expect(sent).toEqual(['/p/moved', '/p/good']);
  });

  it.each([
    ['reloads again and again', '<h1>there</h1><script>setInterval(() => location.reload(), 20)</script>'],
    ['leads away at once', '<h1>there</h1><script>location.href = "/p/good"</script>'],
    [
      'leads away in a frame',
      '<h1>there</h1><iframe srcdoc="<script>top.location.href = \'/p/good\'</script>"></iframe>',
    ],
  ])('and has the required fields counts as a page: %s', async (_, body) => {
    site.pages.set('/p/there', body);
    const { result, asked } = await visit('/p/there');
    expect(titleOf(result)).toBe('there');
    expect(asked).toEqual(['/p/there']);
  });

  // Without Page.stopLoading one round in thirty failed.
  it(
    'while it is being cleared does not pass for the next product',
    { tags: ['nightly'], timeout: 300_000 },
    async () => {
      const busy = "const e = performance.now() + 20; while (performance.now() < e); top.location.href = '/p/good'";
      site.pages.set(
        '/p/there',
        `<h1>there</h1><iframe srcdoc="<script>setInterval(() => {${busy}}, 0)</script>"></iframe>`,
      );
      for (let round = 0; round < 150; round++) expect((await visit('/p/there')).asked).toEqual(['/p/there']);
    },
  );

  it('to another site is a redirect that leaves it', async () => {
    site.pages.set('/p/leave', '<p>x</p><script>location.href = "http://127.0.7.250:1/x"</script>');
    expect(await get('/p/leave')).toMatchObject({ kind: 'redirect', to: 'http://127.0.7.250:1/x' });
  });
});

describe('a product', () => {
  it.each(["/p/a'b|c^d`e{f}g~h", '/p/%7e%E3%81%82あ "<>[]', "/p/q?a='b'|{c}^`d`\\e&あ=%zz#part", '/p/x/../y;z=1//?'])(
    'is requested whatever characters its URL contains: %s',
    async (path) => {
      const url = new URL(path, site.url);
      for (const written of [site.url + path, url.href]) {
        const before = site.hits.length;
        // How the site handles such a path is its own affair.
        expect((await stage.source.fetch(written, NO_HOOKS, neverAborted())).kind).toMatch(/page|gone/);
        expect(site.hits.length).toBe(before + 1);
      }
    },
  );
});

describe('what a page loads', () => {
  it('is bounded: windows, and none of them outlives its product', async () => {
    site.pages.set('/w', 'window');
    const form = '<form target="_blank" action="/w"></form><a href="/w" target="_blank">x</a>';
    const script =
      'for (let i = 0; i < 40; i++) open("/w?" + i); document.forms[0].submit(); document.links[0].click()';
    site.pages.set('/p/windows', `<h1>windows</h1>${form}<script>${script}</script>`);
    const { result, asked } = await visit('/p/windows');
    expect(titleOf(result)).toBe('windows');
    expect(asked.filter((path) => path !== '/favicon.ico').slice(20)).toEqual([]);
    expect(asked.at(-1)).not.toBe('/p/good');
    const before = site.hits.length;
    expect(titleOf(await get('/p/good'))).toBe('good');
    expect(site.paths().slice(before)).toEqual(['/p/good']);
  });

  it('is bounded: documents of frames and windows', async () => {
    site.pages.set('/frame', '<p>frame</p>');
    // Half a second after the tenth frame: even on a slow machine that many exist, and more had time to load.
    const script = `
      let loaded = 0;
      const note = ({ target }) => {
        if (target.contentDocument?.body?.textContent !== 'frame' || ++loaded !== 10) return;
        setTimeout(() => document.body.append(Object.assign(document.createElement('h1'), { textContent: 'framed' })), 500);
      };
      for (let i = 0; i < 60; i++)
        document.body.append(Object.assign(document.createElement('iframe'), { src: '/frame?' + i, onload: note }));`;
    site.pages.set('/p/frames', `<body><script>${script}</script>`);
    const { result, asked } = await visit('/p/frames');
    expect(titleOf(result)).toBe('framed');
    expect(asked.length).toBeLessThanOrEqual(20);
    expect(asked.length).toBeGreaterThan(10);
  });

  it('is bounded: requests of any kind', async () => {
    site.pages.set('/data', 'data');
    const load = 'for (let i = 0; i < 400; i++) await fetch("/data?" + i, { cache: "no-store" }).catch(() => {})';
    site.pages.set(
      '/p/flood',
      `<body><script>(async () => { ${load}; document.body.innerHTML = "<h1>flooded</h1>" })()</script>`,
    );
    const { result, asked } = await visit('/p/flood');
    expect(titleOf(result)).toBe('flooded');
    expect(asked.length).toBe(200);
  });
});
