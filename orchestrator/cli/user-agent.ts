/** Who we say we are at the site. */
import type { Config } from './config/load-config.ts';

/** What names the page that says who is crawling, in the way every crawler writes it. */
const LINK = /\+https?:\/\/[^\s)]+/;

/** True when the site's people can find out who we are. */
export const hasLink = (userAgent: string | null): boolean => userAgent !== null && LINK.test(userAgent);

export const userAgentOf = (config: Config, version: string): string =>
  config.values.site.user_agent ?? `crawlfleet/${version}`;

/** What is missing where the site's people cannot find out. */
export const WHO_TO_SAY =
  'say who you are, with a link to a page about the crawler, such as "examplebot/1.0 (+https://example.com/bot)"';
