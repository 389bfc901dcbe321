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
import { isSameSite } from '../../shared/domain/same-site.ts';

/** Statuses that refuse visitors; 430 and 999 by custom, 503 only without a Retry-After. */
const REFUSING_STATUSES = new Set([401, 403, 418, 420, 430, 451, 503, 999]);

/** @param url the URL that was requested */
export function judge(page: SeenPage, url: string, rules: SiteRules): Judgement {
  return (page.reply && judgeBySite(page, page.reply, url, rules)) ?? judgeByKind(page, url, rules);
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

function judgeByKind(page: SeenPage, url: string, rules: SiteRules): Judgement {
  switch (page.kind) {
    case 'page':
      return judgePage(page, url, rules);
    case 'gone':
      return judgeGone(page.reply, url);
    case 'unchanged':
      return unremarkable('unchanged');
    case 'redirect':
      return judgeRedirect(page, url, rules);
    case 'failed':
      return judgeFailure(page, url);
  }
}

function judgePage(page: Extract<SeenPage, { kind: 'page' }>, url: string, rules: SiteRules): Judgement {
  const { reply, missing } = page;
  if (missing === null && page.hasValues && rules.provesPages) return unremarkable('right');
  const shape = reply.shape();
  const hasProduct = missing === null && page.hasValues;
  // Values of optional fields may be any page's heading: only marks that no ordinary page has count against them.
  const content = judgeContent(reply, shape, isSmall(shape) && !hasProduct, url);
  if (content !== null) return content;
  const moved = judgeMove(url, reply);
  if (moved !== null) return moved;
  if (isLogIn(shape)) return accused('refusal', 'log-in-page', url, reply);
  if (hasProduct) return unremarkable('right');
  return accused('odd', oddRule(missing), url, reply);
}

/**
 * Status 200 is a page that a script or refresh sends elsewhere, as the browser reports it: a page without its values.
 */
function judgeRedirect(page: Extract<SeenPage, { kind: 'redirect' }>, url: string, rules: SiteRules): Judgement {
  const { reply, to } = page;
  if (reply.status === 200) {
    const shown = judgePage({ kind: 'page', reply, missing: null, hasValues: false }, url, rules);
    if (shown.kind !== 'odd') return shown;
  }
  const target = classifyRedirect(url, to);
  return target === 'hop' ? unremarkable('hop') : accused('refusal', `redirect-${target}`, url, reply);
}

/** A browser follows redirects on its own: its final URL is as good as a redirect target. */
function judgeMove(url: string, reply: SeenReply): Judgement | null {
  const target = reply.url === url ? 'hop' : classifyRedirect(url, reply.url);
  return target === 'hop' ? null : accused('refusal', `redirect-${target}`, url, reply);
}

/** A ban may present itself as a 404. */
function judgeGone(reply: SeenReply, url: string): Judgement {
  const shape = reply.shape();
  return judgeContent(reply, shape, isSmall(shape), url) ?? judgeMove(url, reply) ?? unremarkable('gone');
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

function judgeFailure(page: Extract<SeenPage, { kind: 'failed' }>, url: string): Judgement {
  const { reply, retryAfterMs } = page;
  if (reply === null) return unremarkable('failed');
  const { status } = reply;
  const isRefusing = REFUSING_STATUSES.has(status) || status === 429 || status === 405;
  const moved = judgeMove(url, reply);
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

/** Last step of a path (without its extension) or any whole step of it. */
const LOG_IN_STEPS = new Set('login log-in signin sign-in sign_in logon sso auth'.split(' '));
const CHECK_STEPS = new Set(
  (
    'verify verification captcha validatecaptcha challenge checkpoint blocked block banned denied access-denied ' +
    'accessdenied forbidden robot robotcheck bot-check botcheck are-you-human human sorry unusual-traffic punish'
  ).split(' '),
);
const HOME_PATHS = new Set(['/', '/index.html', '/index.htm', '/index.php', '/home', '/top']);

/**
 * hop        another URL of the same site, perhaps the product's own
 * elsewhere  another site
 * home       the front page
 * log-in     a log-in page
 * check      a bot check, or a page that denies access
 */
type RedirectTarget = 'hop' | 'elsewhere' | 'home' | 'log-in' | 'check';

function classifyRedirect(from: string, to: string): RedirectTarget {
  if (!isSameSite(from, to)) return 'elsewhere';
  const path = pathOf(to);
  const steps = path.split('/').map((step) => step.replace(/\.[a-z]{2,5}$/, ''));
  const known = new Set(pathOf(from).split('/'));
  // A path step that the product's own URL has, too, is no evidence.
  const fresh = steps.filter((step) => !known.has(step));
  if (fresh.some((step) => CHECK_STEPS.has(step))) return 'check';
  if (fresh.some((step) => LOG_IN_STEPS.has(step))) return 'log-in';
  if (HOME_PATHS.has(path) && !HOME_PATHS.has(pathOf(from))) return 'home';
  return 'hop';
}

function pathOf(url: string): string {
  return (URL.parse(url)?.pathname ?? '/').toLowerCase();
}
