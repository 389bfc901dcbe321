/** A site's own ban rules, compiled. */
import type { BanRules } from '../../shared/domain/verdict.ts';

export interface SiteRules {
  hasStatus(status: number): boolean;
  /** True when the target contains one of the parts that mean a ban. */
  hasRedirect(target: string): boolean;
  hasPattern(body: string): boolean;
  /** True when every mapping has a required field or `rows`, so that a page with them is proven right. */
  provesPages: boolean;
}

/** A pattern with none of these is plain text. */
const SPECIAL = /[\\^$.|?*+()[\]{}]/;

/**
 * Compiles the rules. Patterns are RE2, which matches in time linear in the page; the library is loaded only when a
 * pattern is more than plain text. Throws for an invalid pattern: the configuration check has already caught those.
 */
export async function compileSiteRules(
  rules: Pick<BanRules, 'statuses' | 'redirects' | 'patterns'>,
  provesPages: boolean,
): Promise<SiteRules> {
  const statuses = new Set(rules.statuses);
  const redirects = rules.redirects.map((part) => part.toLowerCase());
  const texts = rules.patterns.filter((pattern) => !SPECIAL.test(pattern)).map((text) => text.toLowerCase());
  const matchers = await compilePatterns(rules.patterns.filter((pattern) => SPECIAL.test(pattern)));
  return {
    hasStatus: (status) => statuses.has(status),
    hasRedirect: (target) => {
      const lower = target.toLowerCase();
      return redirects.some((part) => lower.includes(part));
    },
    hasPattern: (body) => {
      if (texts.length > 0) {
        const lower = body.toLowerCase();
        if (texts.some((text) => lower.includes(text))) return true;
      }
      return matchers.some((matches) => matches(body));
    },
    provesPages,
  };
}

async function compilePatterns(patterns: string[]): Promise<((body: string) => boolean)[]> {
  if (patterns.length === 0) return [];
  const { RE2JS } = await import('re2js');
  return patterns.map((pattern) => {
    const compiled = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
    return (body) => compiled.matcher(body).find();
  });
}
