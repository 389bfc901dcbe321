/** How the crawler identifies itself to the site. */
import type { Config } from '../config/load-config.ts';
import { VERSION } from '../version.ts';

/** The link to the page about the crawler, in the form every crawler uses. */
const LINK = /\+https?:\/\/[^\s)]+/;

/** True when the site's operators can find out who we are. */
export const hasLink = (userAgent: string | null): boolean => userAgent !== null && LINK.test(userAgent);

export const userAgentOf = (config: Config): string => config.values.site.user_agent ?? `crawlfleet/${VERSION}`;

/** The warning when they cannot. */
export const WHO_TO_SAY =
  'say who you are, with a link to a page about the crawler, such as "examplebot/1.0 (+https://example.com/bot)"';
