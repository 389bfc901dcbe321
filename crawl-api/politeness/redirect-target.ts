/** Classifies a redirect by its target alone. */
import { isSameSite } from '../../shared/domain/same-site.ts';

/** Last step of a path (without its extension) or any whole step of it. */
const LOG_IN_STEPS = new Set(['login', 'log-in', 'signin', 'sign-in', 'sign_in', 'logon', 'sso', 'auth']);
const CHECK_STEPS = new Set([
  'verify',
  'verification',
  'captcha',
  'validatecaptcha',
  'challenge',
  'checkpoint',
  'blocked',
  'block',
  'banned',
  'denied',
  'access-denied',
  'accessdenied',
  'forbidden',
  'robot',
  'robotcheck',
  'bot-check',
  'botcheck',
  'are-you-human',
  'human',
  'sorry',
  'unusual-traffic',
  'punish',
]);
const HOME_PATHS = new Set(['/', '/index.html', '/index.htm', '/index.php', '/home', '/top']);

/**
 * hop        another URL of the same site, perhaps the product's own
 * elsewhere  another site
 * home       the front page
 * log-in     a log-in page
 * check      a bot check, or a page that denies access
 */
export type RedirectTarget = 'hop' | 'elsewhere' | 'home' | 'log-in' | 'check';

export function classifyRedirect(from: string, to: string): RedirectTarget {
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
