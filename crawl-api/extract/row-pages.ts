/** Which pages may have rows, by the sections of a mapping. */
import { hasRows, type Mapping } from '../../shared/domain/mapping.ts';
import { indexSections } from '../../shared/domain/url-patterns.ts';

/** The section for a URL: by its `url_patterns`, one for every page, or none. */
export type RowPages = (url: string) => 'named' | 'any' | 'none';

/**
 * For a mapping with `rows`; null for one that gives one row a product. Compiles the patterns, and loads their library
 * only if there are some.
 */
export async function compileRowPages(mapping: Mapping): Promise<RowPages | null> {
  if (!hasRows(mapping)) return null;
  const hasPatterns = mapping.pages.some(({ urlPatterns }) => urlPatterns.length > 0);
  const compile = hasPatterns ? (await import('../../shared/adapters/steps/regex.ts')).compilePattern : null;
  const sectionOf = indexSections(
    mapping.pages.map((page) => ({ value: page, patterns: page.urlPatterns })),
    (pattern) => compile!(pattern),
  );
  return (url) => {
    const section = sectionOf(url);
    if (section === null) return 'none';
    return section.urlPatterns.length > 0 ? 'named' : 'any';
  };
}
