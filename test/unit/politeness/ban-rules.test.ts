/** Every rule by name, with realistic replies. docs/bans.md lists the same names. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { judge } from '../../../crawl-api/politeness/ban-rules.ts';
import { CHALLENGES } from '../../../crawl-api/politeness/challenge-marks.ts';
import type { SeenPage } from '../../../crawl-api/politeness/judgement.ts';
import { compileSiteRules, type SiteRules } from '../../../crawl-api/politeness/site-rules.ts';
import { EVIDENCE_BODY_BYTES } from '../../../shared/domain/verdict.ts';
import { evidenceSchema } from '../../../shared/wire/callbacks.ts';
import { cpuMs } from '../../support/cpu-ms.ts';
import {
  ASKED,
  URL_ASKED,
  gone,
  productPage,
  redirect,
  reply,
  right,
  shownRedirect,
  status,
  without,
} from './replies.ts';

const NO_RULES = { statuses: [], redirects: [], patterns: [] };
let builtIn: SiteRules;
/** The same for a mapping without required fields. */
let unproven: SiteRules;
beforeAll(async () => {
  builtIn = await compileSiteRules(NO_RULES, true);
  unproven = await compileSiteRules(NO_RULES, false);
});

/**
 * What the rules say of a page, as `kind rule`, and pages of which they say it. The first page of a protection product
 * is from its documentation and the recordings of is-antibot.
 */
const PAGES: Record<string, Record<string, SeenPage>> = {
  'refusal status-403': { '403': status(403, '<h1>403 Forbidden</h1>') },
  'refusal redirect-check': {
    'a 302 to a verification page': redirect('https://shop.example.jp/verify?back=%2Fitem%2FP1'),
    'a 302 to a page of the site that refuses': redirect('https://shop.example.jp/ja/blocked.html'),
    'a 302 to a page below others that takes visitors back': redirect(
      'https://shop.example.jp/security/sorry/index?continue=https://shop.example.jp/item/P1',
    ),
    'a 302 to a page that is called like nothing else': redirect('https://shop.example.jp/errors/validateCaptcha'),
    'a page with text that redirects to a verification page by script': shownRedirect(
      'https://shop.example.jp/captcha',
      productPage(),
    ),
  },
  'refusal script-shell': {
    'a 200 with a single line of script': without(
      '<script>window.location.href="/verify?u="+escape(location.pathname);</script>',
    ),
    'the bare line, without a tag': without('window.location.replace("https://shop.example.jp/check");'),
    'the bare line, with a variable first': without("var u='/check?s=1';\nlocation = u;"),
    'the same in a whole document': without(
      '<html><head><script>document.location="/x"</script></head><body></body></html>',
    ),
    'a meta refresh': without(
      '<html><head><meta http-equiv="Refresh" content="0; url=/check"></head><body>Redirecting…</body></html>',
    ),
    'a form that submits itself': without(
      '<form action="/check" method=post><input type=hidden name=t value=1></form><script>document.forms[0].submit()</script>',
    ),
    'a cookie and a reload': without(
      '<html><body><script>document.cookie="k=1";location.reload(true);</script></body></html>',
    ),
    'only an obfuscated script': without(
      '<html><script>var _0x1f=["\\x61"];(function(){eval(_0x1f[0])})()</script></html>',
    ),
    'a page that only redirects by script in a browser': shownRedirect(
      'https://shop.example.jp/c',
      '<script>location.href="/c"</script>',
    ),
    'a 404 that redirects elsewhere': gone('<meta http-equiv=refresh content="3;url=/"><h1>Not found</h1>'),
  },
  'odd field-missing': {
    'an application that builds its page': without(
      '<html><head><script src="/app.js"></script></head><body><div id="root"></div><noscript>You need JavaScript</noscript></body></html>',
    ),
    'such an application with a line of text': without(
      '<html><head><script>if(!window.Promise)location.href="/old"</script><script src="/app.js"></script></head><body><div id="root"></div></body></html>',
    ),
    'a text about locations': without('Our location = Tokyo and the stock is there'),
    'an empty page': without(''),
    'JSON without the field': without('{"location":"/x"}', { headers: { 'content-type': 'application/json' } }),
    'a real page with a refresh': without(productPage('<meta http-equiv="refresh" content="600">')),
    'a long page with a login box': without(`${productPage()}${productPage()}<input type=password>`),
    "Cloudflare's script on an ordinary page": without(
      productPage('<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'),
    ),
    "DataDome's script on an ordinary page": without(
      productPage('<script src="https://js.datadome.co/tags.js"></script>'),
      { headers: { 'x-datadome': 'protected' } },
    ),
    "PerimeterX's script on an ordinary page": without(productPage('<script>window._pxAppId="PXu"</script>')),
    "Akamai's script on an ordinary page": without(productPage('<script>bmak.sensor_data="x"</script>')),
    "Imperva's script on an ordinary page": without(
      productPage('<script src="/_Incapsula_Resource?SWJIYLWA=1"></script>'),
    ),
    'a page without a price that embeds a captcha': without(
      productPage('<script src="https://www.google.com/recaptcha/api.js"></script>'),
    ),
  },
  'refusal log-in-page': {
    'a login page with 200': without(
      '<html><body><h1>Log in</h1><form><input name=u><input type="password" name=p></form></body></html>',
    ),
  },
  'refusal redirect-log-in': {
    'a redirect to the login': redirect('https://shop.example.jp/account/login.php?next=%2Fitem%2FP1'),
    'a browser that ended up at the login': without('<p>Hello</p>', { url: 'https://shop.example.jp/login' }),
  },
  'refusal redirect-home': {
    'a redirect to the front page': redirect('https://shop.example.jp/'),
    'a redirect to the front page with a session': redirect('https://shop.example.jp/index.php?osCsid=1f&gclid=2'),
    'a redirect to the front page that repeats the request': redirect('https://shop.example.jp/?from=/item/P1'),
  },
  'refusal redirect-elsewhere': { 'a redirect to another site': redirect('https://validate.example.net/?u=shop') },
  hop: {
    'a redirect to the URL with a name in it': redirect('https://shop.example.jp/item/P1/captcha-solver-toy', 301),
    'a page with text that redirects by script': shownRedirect('https://shop.example.jp/item/P2', productPage()),
    'a redirect to the www form': redirect('https://www.shop.example.jp/item/P1', 301),
    'a redirect to its ID and a title that is a word of bans': redirect('https://shop.example.jp/book/P1/sorry', 301),
    'a redirect to a title that is a word of bans': redirect('https://shop.example.jp/toys/robot', 301),
    'a redirect to a parameter with its ID': redirect('https://shop.example.jp/?p=P1', 301),
    'a redirect to a parameter with an ID of the site': redirect(
      'https://shop.example.jp/index.php?main_page=product&products_id=88',
      301,
    ),
  },
  'refusal captcha': {
    'a page that reloads in a browser, with a captcha': shownRedirect(
      URL_ASKED,
      '<form><div class="g-recaptcha"></div></form>',
    ),
    'a captcha page': without(
      '<html><body><form><div class="g-recaptcha" data-sitekey="k"></div></form></body></html>',
    ),
    'a captcha with 403': status(403, '<div class="h-captcha"></div>'),
    'a Turnstile page': without('<title>One moment</title><div class="cf-turnstile" data-sitekey="k"></div>'),
    'a captcha of captcha.eu': without('<h1>One moment</h1><script src="https://www.captcha.eu/sdk.js"></script>'),
  },
  'refusal status-401': { '401': status(401) },
  'refusal status-451': { '451': status(451) },
  'refusal status-430': { '430, by convention': status(430) },
  'refusal status-999': { '999, by convention': status(999) },
  'refusal status-503': { '503 without Retry-After': status(503, 'Service Unavailable') },
  wait: {
    '503 with it': status(503, '', { 'retry-after': '5' }, 5_000),
    '429 with it': status(429, '', { 'retry-after': '5' }, 5_000),
  },
  'banned status-429': {
    '429 without': status(429, 'Too many requests'),
    '429 with garbage': status(429, '', { 'retry-after': 'soon' }),
    '429 with a challenge in its page': status(429, '<script>_cf_chl_opt={}</script>'),
  },
  failed: {
    '500': status(500, '<h1>Internal error</h1>'),
    'no reply at all': { kind: 'failed', reply: null, retryAfterMs: null },
  },
  gone: {
    '404': gone('<h1>Not found</h1><p>This item is no longer sold.</p>'),
    '410': gone('', 410),
  },
  'odd rows-missing': { 'a record page without records': { ...without('<p>x</p>'), missing: 'rows' } as SeenPage },
  'odd mapping-missing': { 'a URL without a mapping': { ...without('<p>x</p>'), missing: 'mapping' } as SeenPage },
  'odd no-values': { 'a page with no value in any field': { ...right('<p>x</p>'), hasValues: false } as SeenPage },
  right: {
    'a good page': right(productPage()),
    'a product page that embeds a captcha': right('<h1>Bag</h1><div class="g-recaptcha"></div>'),
    'a product page with every known script': right(
      '<h1>Bag</h1><script>window._cf_chl_opt={};location.href="/"</script><div id=px-captcha>',
    ),
  },
  'banned challenge-cloudflare': {
    'Cloudflare by its header': status(403, '<title>Just a moment...</title>', {
      'cf-mitigated': 'challenge',
      server: 'cloudflare',
    }),
    'a challenge header on a page with all fields': right(productPage(), { headers: { 'cf-mitigated': 'challenge' } }),
  },
  'refusal challenge-cloudflare': {
    'Cloudflare by its page': status(
      503,
      '<html><head><title>Just a moment...</title></head><body><script>(function(){window._cf_chl_opt={cvId:"3"}}())</script></body></html>',
    ),
    'Cloudflare 1020': status(403, '<div id="cf-error-details"><h1>Sorry, you have been blocked</h1></div>'),
    'Cloudflare under 404': gone('<script>window._cf_chl_opt={};</script>'),
  },
  'refusal challenge-datadome': {
    DataDome: without(
      "<html><head><title>shop</title></head><body><p id=cmsg>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c','host':'geo.captcha-delivery.com'}</script></body></html>",
    ),
  },
  'refusal challenge-perimeterx': {
    PerimeterX: without(
      '<title>Robot or human?</title><h1>Robot or human?</h1><p>Activate and hold the button</p><div id="px-captcha"></div><script>window._pxAppId="PXu"</script>',
    ),
    'PerimeterX as JSON': status(403, '{"appId":"PXabc","jsClientSrc":"/x","blockScript":"/captcha.js"}'),
  },
  'refusal challenge-akamai': {
    'Akamai denies': status(
      403,
      '<H1>Access Denied</H1> You don\'t have permission to access "http&#58;&#47;&#47;shop" on this server.<P>Reference&#32;&#35;18&#46;1 https&#58;&#47;&#47;errors&#46;edgesuite&#46;net',
    ),
    'Akamai checks': without(
      '<html><body><div id="sec-if-cpt-container"></div><script src="/_sec/cp_challenge/x.js"></script></body></html>',
    ),
  },
  'refusal challenge-imperva': {
    Imperva: without(
      '<html><head><META NAME="robots" CONTENT="noindex,nofollow"><script src="/_Incapsula_Resource?SWJIYLWA=5074,719d"></script><body></body></html>',
    ),
    'Imperva denies': status(403, '<iframe>Request unsuccessful. Incapsula incident ID: 123-456</iframe>'),
  },
  'banned challenge-aws-waf': {
    'AWS WAF': without('<script>AwsWafIntegration.saveReferrer();AwsWafIntegration.checkForceRefresh()</script>', {
      status: 202,
      headers: { 'x-amzn-waf-action': 'challenge' },
    }),
  },
  'refusal challenge-aws-waf': {
    'an AWS WAF challenge': status(405, '<script>window.gokuProps={"key":"x"}</script>'),
    'AWS WAF by its cookie domains': without(
      '<script>window.awsWafCookieDomainList=["shop.example.jp"]</script><p>Please wait</p>',
    ),
  },
  'refusal challenge-kasada': {
    Kasada: status(403, '<html><script>window.KPSDK={};</script><script src="/149e/2d20/ips.js?x=1"></script></html>'),
  },
  'banned challenge-vercel': {
    Vercel: status(403, '<title>Vercel Security Checkpoint</title>', { 'x-vercel-mitigated': 'challenge' }),
  },
  'refusal challenge-f5': {
    F5: without(
      '<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with your administrator.<br>Your support ID is: 1</body></html>',
    ),
  },
  'refusal challenge-sucuri': { Sucuri: status(403, '<title>Sucuri WebSite Firewall - Access Denied</title>') },
  'refusal challenge-reblaze': { Reblaze: without('<html><script>window.rbzns={}</script></html>') },
  'refusal challenge-anubis': {
    Anubis: without(
      '<title>Making sure you&#39;re not a bot!</title><script id="anubis_challenge" type="application/json">{}</script>',
    ),
  },
  'refusal challenge-ddos-guard': {
    'DDoS-Guard': status(
      403,
      '<title>DDoS-Guard</title>Checking your browser<script src="/.well-known/ddos-guard/js"></script>',
    ),
  },
  'refusal challenge-wordfence': {
    Wordfence: status(503, 'Your access to this site has been limited by the site owner. Generated by Wordfence'),
  },
  'refusal challenge-hcdn': { hCDN: without('<script src="/hcdn-cgi/jschallenge"></script>') },
  'refusal challenge-client-challenge': {
    'a client challenge': without(
      '<html><head><title>Client Challenge</title><link href="/_fs-ch-1T1/styles.css" rel=stylesheet></head></html>',
    ),
  },
  'refusal challenge-alibaba': {
    Alibaba: without('<script>window.location="/_____tmd_____/punish?x5secdata=1"</script>'),
  },
  'refusal challenge-amazon-captcha': {
    'an Amazon captcha': without(
      '<form action="/errors/validateCaptcha"><p>Enter the characters you see below</p></form>',
    ),
  },
  'refusal challenge-cheq': {
    CHEQ: without('<p>Please wait</p><script src="//ob.cheqzone.com/clicktrue.js"></script>'),
  },
  'refusal challenge-ocule': { Ocule: status(403, '<script src="https://proxy.ocule.co.uk/script.js"></script>') },
};

const CASES = Object.entries(PAGES).flatMap(([judgement, pages]) => {
  const [kind, rule = null] = judgement.split(' ');
  return Object.entries(pages).map(([what, page]) => ({ what, page, kind, rule }));
});

describe('the built-in ban rules', () => {
  it.each(CASES)('$what', ({ page, kind, rule }) => {
    const judgement = judge(page, ASKED, builtIn);
    expect([judgement.kind, judgement.rule]).toEqual([kind, rule]);
    const verdict = rule === null ? 'ok' : kind === 'banned' ? 'banned' : 'suspect';
    expect(judgement.verdict).toBe(verdict);
    expect(judgement.evidence?.rule ?? null).toBe(rule);
  });

  it('each have a test case and a line in the documentation', () => {
    const names = new Set(CASES.flatMap(({ rule }) => rule ?? []));
    for (const { rule } of CHALLENGES) expect(names).toContain(rule === 'captcha' ? rule : `challenge-${rule}`);
    const text = readFileSync(new URL('../../../docs/bans.md', import.meta.url), 'utf8');
    const others =
      'site-status site-redirect site-pattern redirect-loop retry-after slow canary-differs all-gone gone-in-row unchanged-in-row values-missing';
    for (const name of [...names, ...others.split(' ')])
      expect(text).toContain(`\`${name.replace(/^status-(?!429)\d+$/, 'status-…')}\``);
  });

  it.each([
    [
      'a challenge with a heading that the mapping extracts as a title',
      '<h1>shop.example.jp</h1><script>window._cf_chl_opt={}</script>',
      'refusal',
    ],
    ['a script shell with a title', '<title>shop</title><script>location.href="/check"</script>', 'refusal'],
    ['a page that embeds a captcha', '<h1>Bag</h1><div class="g-recaptcha"></div>', 'right'],
  ] as const)('do not trust values of optional fields: %s', (_what, body, kind) => {
    expect(judge(right(body), ASKED, unproven).kind).toBe(kind);
  });
});

describe("the site's own rules", () => {
  it.each<[string, SeenPage, string | null]>([
    ['a status', status(403), 'site-status'],
    ['a status with a Retry-After', status(429, '', {}, 5_000), 'site-status'],
    ['a redirect', redirect('https://shop.example.jp/Sorry/index?x'), 'site-redirect'],
    ['a browser that ended up there', right('x', { url: 'https://shop.example.jp/sorry/' }), 'site-redirect'],
    ['plain text in any case', right('<p>UNUSUAL Traffic from your network</p>'), 'site-pattern'],
    ['a pattern', right('<p>アクセスが 拒否 されました #123</p>'), 'site-pattern'],
    ['neither', right('<p>usual traffic, アクセスが拒否</p>'), null],
  ])('apply whatever else the page contains: %s', async (_what, page, rule) => {
    const rules = await compileSiteRules(
      { statuses: [403, 429], redirects: ['/sorry/'], patterns: ['unusual traffic', 'アクセスが\\s+拒否.*#\\d+'] },
      true,
    );
    expect(judge(page, ASKED, rules).rule).toBe(rule);
  });

  it('match in linear time, whatever the pattern', async () => {
    const rules = await compileSiteRules({ statuses: [], redirects: [], patterns: ['(a+)+$', '(x|xx)*y'] }, true);
    const page = right(`${'a'.repeat(60_000)}!${'x'.repeat(5_000)}`);
    expect(cpuMs(() => expect(judge(page, ASKED, rules).kind).toBe('right'))).toBeLessThan(3_000);
  });
});

describe('a browser that ended up elsewhere', () => {
  const LOG_IN = 'https://shop.example.jp/login?back=1';
  const CHECK = 'https://shop.example.jp/captcha';
  function at(page: SeenPage, url: string): SeenPage {
    if (page.reply === null) throw new Error('no reply');
    return { ...page, reply: { ...page.reply, url } };
  }

  it.each<[string, SeenPage, string]>([
    ['404 at a login page', at(gone('<h1>Not found</h1>'), LOG_IN), 'redirect-log-in'],
    ['404 at a verification page', at(gone('<h1>Not found</h1>'), CHECK), 'redirect-check'],
    ['410 at another site', at(gone('', 410), 'https://blocked.example.net/'), 'redirect-elsewhere'],
    ['400 at a verification page', at(status(400), CHECK), 'redirect-check'],
    ['503 with a Retry-After at a verification page', at(status(503, '', {}, 5_000), CHECK), 'redirect-check'],
  ])('is refused, as it is without a browser: %s', (_what, page, rule) => {
    expect(judge(page, ASKED, builtIn)).toMatchObject({ kind: 'refusal', rule });
  });

  it('is not refused at another address of the product', () => {
    const moved = `${URL_ASKED}-canvas-bag`;
    expect(judge(at(gone('<h1>Not found</h1>'), moved), ASKED, builtIn).kind).toBe('gone');
    expect(judge(at(status(500), moved), ASKED, builtIn).kind).toBe('failed');
  });

  it('has no product where no field is required', () => {
    const page = right('<h1>Welcome</h1>', { url: 'https://shop.example.jp/' });
    expect(judge(page, ASKED, unproven)).toMatchObject({ kind: 'refusal', rule: 'redirect-home' });
  });
});

describe('a mapping without required fields', () => {
  const LOG_IN_FORM = '<h1>Members</h1><form action=/login><input type=password></form>';

  it('does not treat a login page as a product', () => {
    expect(judge(right(LOG_IN_FORM), ASKED, unproven)).toMatchObject({ kind: 'refusal', rule: 'log-in-page' });
    expect(judge(right(LOG_IN_FORM), ASKED, builtIn).kind).toBe('right');
  });

  it('treats a page with a value as a product', () => {
    expect(judge(right('<h1>Bag</h1>'), ASKED, unproven).kind).toBe('right');
  });
});

describe('evidence', () => {
  it('is bounded, contains no cookie, and matches the wire schema', () => {
    const headers: Record<string, string> = { 'set-cookie': 'session=1', cookie: 'a=b', server: 'x'.repeat(5_000) };
    for (let i = 0; i < 500; i++) headers[`x-${i}`] = 'v';
    const url = `https://shop.example.jp/${'a'.repeat(20_000)}`;
    const refused = reply({ status: 403, headers, body: '日本語😀'.repeat(5_000), url });
    const { evidence } = judge({ kind: 'failed', reply: refused, retryAfterMs: null }, ASKED, builtIn);
    expect(evidenceSchema.parse(evidence)).toEqual(evidence);
    expect(Buffer.byteLength(evidence!.body)).toBeLessThanOrEqual(EVIDENCE_BODY_BYTES);
    expect(evidence!.body).not.toContain('\uFFFD');
    expect(Object.keys(evidence!.headers)).not.toContain('set-cookie');
    expect(Object.keys(evidence!.headers)).not.toContain('cookie');
    expect(JSON.stringify(evidence).length).toBeLessThan(30_000);
  });
});

describe('reading a page', () => {
  it.each([
    ['unclosed scripts', '<script>'.repeat(8_000)],
    ['unclosed comments', '<!--'.repeat(16_000)],
    ['open brackets', '<'.repeat(65_536)],
    ['unterminated tags', '<a '.repeat(20_000)],
    ['location after location', 'location '.repeat(7_000)],
    ['spaces', `<script>location${' '.repeat(60_000)}</script>`],
    ['refreshes', '<meta http-equiv=refresh'.repeat(2_500)],
  ])('takes linear time: %s', (_what, body) => {
    expect(cpuMs(() => judge(without(body), ASKED, builtIn))).toBeLessThan(500);
  });
});
