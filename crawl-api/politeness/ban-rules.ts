/**
 * Judges one reply: the page that was requested, an odd page, a possible ban, or an unambiguous ban. Every rule has a
 * name and is in docs/bans.md. Pure; time linear in the part of the body that was kept. Rules about a whole page use
 * its shape, which is counted over all of it.
 *
 * The order matters. The site's own rules come first and apply to every reply. A header that only a challenge has comes
 * next. Then a page with all its required values is right, whatever scripts it carries: no mark in its source makes it
 * a ban.
 */
import { findChallengeHeader, findChallengeMark } from './challenge-marks.ts';
import {
  accused,
  ENOUGH_CHARS,
  type Judgement,
  type PageShape,
  type SeenPage,
  type SeenReply,
  unremarkable,
} from './judgement.ts';
import type { SiteRules } from './site-rules.ts';
import { namesProduct, repeatsRequest, type Requested } from '../../shared/domain/landing.ts';
import { isSameSite } from '../../shared/domain/same-site.ts';

/** A request: its URL, and the product for which it was sent. */
export interface Asked {
  url: string;
  product: Requested;
}

/** Statuses that refuse visitors; 430 and 999 by custom, 503 only without a Retry-After. */
const REFUSING_STATUSES = new Set([401, 403, 418, 420, 430, 451, 503, 999]);

/** @param asked what was requested: the URL, and the product that it belongs to */
export function judge(page: SeenPage, asked: Asked, rules: SiteRules): Judgement {
  return (page.reply && judgeBySite(page, page.reply, asked.url, rules)) ?? judgeByKind(page, asked, rules);
}

/** The site's own rules, and the headers of a challenge: for every reply. */
function judgeBySite(page: SeenPage, reply: SeenReply, url: string, rules: SiteRules): Judgement | null {
  if (rules.hasStatus(reply.status)) return accused('banned', 'site-status', url, reply);
  if ((page.kind === 'redirect' && rules.hasRedirect(page.to)) || (reply.url !== url && rules.hasRedirect(reply.url)))
    return accused('banned', 'site-redirect', url, reply);
  if (rules.hasPattern(reply.body)) return accused('banned', 'site-pattern', url, reply);
  const challenge = findChallengeHeader(reply.status, reply.headers);
  return challenge === null ? null : accused('banned', `challenge-${challenge}`, url, reply);
}

function judgeByKind(page: SeenPage, asked: Asked, rules: SiteRules): Judgement {
  switch (page.kind) {
    case 'page':
      return judgePage(page, asked, rules);
    case 'gone':
      return judgeGone(page.reply, asked);
    case 'unchanged':
      return unremarkable('unchanged');
    case 'redirect':
      return judgeRedirect(page, asked, rules);
    case 'failed':
      return judgeFailure(page, asked);
  }
}

function judgePage(page: Extract<SeenPage, { kind: 'page' }>, asked: Asked, rules: SiteRules): Judgement {
  const { reply, missing } = page;
  const { url } = asked;
  if (missing === null && page.hasValues && rules.provesPages) return unremarkable('right');
  const shape = reply.shape();
  const hasProduct = missing === null && page.hasValues;
  // Values of optional fields may be any page's heading: only marks that no ordinary page has count against them.
  const content = judgeContent(reply, shape, isSmall(shape) && !hasProduct, url);
  if (content !== null) return content;
  const moved = judgeMove(asked, reply);
  if (moved !== null) return moved;
  if (isLogIn(shape)) return accused('refusal', 'log-in-page', url, reply);
  if (hasProduct) return unremarkable('right');
  return accused('odd', oddRule(missing), url, reply);
}

/**
 * Status 200 is a page that a script or refresh sends elsewhere, as the browser reports it: a page without its values.
 */
function judgeRedirect(page: Extract<SeenPage, { kind: 'redirect' }>, asked: Asked, rules: SiteRules): Judgement {
  const { reply, to } = page;
  if (reply.status === 200) {
    const shown = judgePage({ kind: 'page', reply, missing: null, hasValues: false }, asked, rules);
    if (shown.kind !== 'odd') return shown;
  }
  const target = classifyRedirect(asked, to);
  return target === 'hop' ? unremarkable('hop') : accused('refusal', `redirect-${target}`, asked.url, reply);
}

/** A browser follows redirects on its own: its final URL is as good as a redirect target. */
function judgeMove(asked: Asked, reply: SeenReply): Judgement | null {
  const target = reply.url === asked.url ? 'hop' : classifyRedirect(asked, reply.url);
  return target === 'hop' ? null : accused('refusal', `redirect-${target}`, asked.url, reply);
}

/** A ban may present itself as a 404. */
function judgeGone(reply: SeenReply, asked: Asked): Judgement {
  const shape = reply.shape();
  return judgeContent(reply, shape, isSmall(shape), asked.url) ?? judgeMove(asked, reply) ?? unremarkable('gone');
}

/** Content alone makes a page a refusal, never a ban: a shop's own pages may look like this. */
function judgeContent(
  reply: SeenReply,
  shape: PageShape | null,
  withEmbeddable: boolean,
  url: string,
): Judgement | null {
  const challenge = findChallengeMark(markedSource(reply, shape), withEmbeddable);
  if (challenge !== null) return accused('refusal', challengeRule(challenge), url, reply);
  return shape !== null && isScriptShell(reply.body, shape) ? accused('refusal', 'script-shell', url, reply) : null;
}

/** The text searched for marks: the beginning, and also the end of a page with hardly any text. */
function markedSource(reply: SeenReply, shape: PageShape | null): string {
  const source = reply.body.toLowerCase();
  return shape !== null && isSmall(shape) ? `${source}\n${shape.tail.toLowerCase()}` : source;
}

/** True when the whole page has hardly any text; false where that is unknown. */
const isSmall = (shape: PageShape | null): boolean => shape !== null && shape.textChars < ENOUGH_CHARS;

function judgeFailure(page: Extract<SeenPage, { kind: 'failed' }>, asked: Asked): Judgement {
  const { reply, retryAfterMs } = page;
  const { url } = asked;
  if (reply === null) return unremarkable('failed');
  const { status } = reply;
  const isRefusing = REFUSING_STATUSES.has(status) || status === 429 || status === 405;
  const moved = judgeMove(asked, reply);
  if (moved === null && retryAfterMs !== null && (status === 429 || status === 503)) return unremarkable('wait');
  if (status === 429 && moved === null) return accused('banned', 'status-429', url, reply);
  const shape = status >= 300 ? reply.shape() : null;
  const challenge = status >= 300 ? findChallengeMark(markedSource(reply, shape), isRefusing || isSmall(shape)) : null;
  if (challenge !== null) return accused('refusal', challengeRule(challenge), url, reply);
  if (moved !== null) return moved;
  return REFUSING_STATUSES.has(status) ? accused('refusal', `status-${status}`, url, reply) : unremarkable('failed');
}

const challengeRule = (name: string): string => (name === 'captcha' ? 'captcha' : `challenge-${name}`);

function isLogIn(shape: PageShape | null): boolean {
  return isSmall(shape) && shape?.hasPasswordField === true;
}

function oddRule(missing: string | null): string {
  if (missing === null) return 'no-values';
  return missing === 'rows' || missing === 'mapping' ? `${missing}-missing` : 'field-missing';
}

/** `location = …`, `location.href = …`, `location.replace(…)`, a self-submitting form, a cookie set before a reload. */
const NAVIGATES =
  /\blocation(?:\s*\.\s*href)?\s*=[^=]|\blocation\s*\.\s*(?:replace|assign|reload)\s*\(|\.submit\s*\(|\bdocument\s*\.\s*cookie\s*=/;
/** `Loading…`, `Redirecting, please wait`. */
const NOTICE_CHARS = 80;
const BARE_SCRIPT_CHARS = 2_048;

function isScriptShell(body: string, shape: PageShape): boolean {
  const text = body.trim();
  if (text === '' || text.startsWith('{') || text.startsWith('[')) return false;
  if (!/<[a-z!/]/i.test(text)) return text.length <= BARE_SCRIPT_CHARS && NAVIGATES.test(text) && /[;)'"}]$/.test(text);
  if (shape.textChars > NOTICE_CHARS) return false;
  if (shape.hasMetaRefresh) return true;
  if (NAVIGATES.test(shape.scripts)) return !shape.hasExternalScript || shape.otherElements === 0;
  return shape.textChars === 0 && shape.otherElements === 0 && shape.scripts !== '' && !shape.hasExternalScript;
}

/** Steps of a path, without extensions, in lower case. */
const LOG_IN_STEPS = new Set('login log-in signin sign-in sign_in logon sso auth'.split(' '));
/** No page is called so but one that checks or refuses visitors. */
const CHECK_NAMES = new Set(
  'captcha validatecaptcha access-denied accessdenied robotcheck bot-check botcheck are-you-human unusual-traffic'.split(
    ' ',
  ),
);
/** Such a page, or a product: a book is called `Sorry`, a toy `Robot`. */
const CHECK_WORDS = new Set(
  'verify verification challenge checkpoint blocked block banned denied forbidden robot human sorry punish'.split(' '),
);
const HOME_PATHS = new Set(['/', '/index.html', '/index.htm', '/index.php', '/home', '/top']);
const LOCALE = /^[a-z]{2}(?:[-_][a-z]{2})?$/;

/**
 * hop        another URL of the same site, perhaps the product's own
 * elsewhere  another site
 * home       the front page
 * log-in     a log-in page
 * check      a bot check, or a page that denies access
 */
type RedirectTarget = 'hop' | 'elsewhere' | 'home' | 'log-in' | 'check';

/** An address that names the product is its page, whatever other words are in it. */
function classifyRedirect({ url, product }: Asked, to: string): RedirectTarget {
  if (!isSameSite(url, to)) return 'elsewhere';
  if (namesProduct(to, product)) return 'hop';
  const path = pathOf(to);
  const steps = path
    .split('/')
    .filter((step) => step !== '')
    .map((step) => step.replace(/\.[a-z]{2,5}$/, ''));
  const known = new Set(pathOf(url).split('/'));
  // A path step that the product's own URL has, too, is no evidence.
  const fresh = steps.filter((step) => !known.has(step));
  if (fresh.some((step) => CHECK_NAMES.has(step))) return 'check';
  // Below `/books/` it is a title; at the top, or with an address to return to, it is a page of the site.
  const first = steps.find((step) => !LOCALE.test(step));
  const isOfSite = repeatsRequest(to, url) || repeatsRequest(to, product.url);
  if (fresh.some((step) => CHECK_WORDS.has(step) && (isOfSite || step === first))) return 'check';
  if (fresh.some((step) => LOG_IN_STEPS.has(step))) return 'log-in';
  if (HOME_PATHS.has(path) && !HOME_PATHS.has(pathOf(url)) && !hasOwnId(to)) return 'home';
  return 'hop';
}

/** Names of parameters that identify a visit or a visitor, not a page: `sid`, `PHPSESSID`, `gclid`. */
const VISIT_ID = /(?:^s|cs|sess|session_?|cl|clk|click_?|visitor_?|user_?|client_?)id$/i;

/** `/index.php?products_id=12`: another page than the front page, by an ID of the site's own. */
function hasOwnId(url: string): boolean {
  const parameters = URL.parse(url)?.searchParams ?? new URLSearchParams();
  return [...parameters].some(([name, value]) => value !== '' && /id$/i.test(name) && !VISIT_ID.test(name));
}

function pathOf(url: string): string {
  return (URL.parse(url)?.pathname ?? '/').toLowerCase();
}
