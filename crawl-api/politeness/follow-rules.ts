/** `site.follow` of the settings, compiled. */
import { DenyList } from '../../shared/domain/deny-list.ts';
import { isAnyHost } from '../../shared/domain/domains.ts';
import { FollowRules } from '../../shared/domain/follow-rules.ts';
import { productUrl } from '../../shared/domain/product.ts';
import type { CrawlSettings } from '../../shared/wire/crawl-settings.ts';

/** The library for patterns is loaded only where there are some. Throws for an invalid pattern. */
export async function compileFollowRules({
  site,
  deny = [],
}: Pick<CrawlSettings, 'site' | 'deny'>): Promise<FollowRules> {
  const { allow = [] } = site.follow ?? {};
  const base = isAnyHost(site.productUrl) ? null : new URL(productUrl(site.productUrl, 'x'));
  return new FollowRules({
    allow: allow.length === 0 ? [] : await compilePatterns(allow),
    deny: new DenyList(deny, base),
  });
}

async function compilePatterns(patterns: readonly string[]) {
  const { compilePattern } = await import('../../shared/adapters/steps/regex.ts');
  return patterns.map(compilePattern);
}
