/** What the sections of a mapping say of a page before it is requested. */
import { hasRows, type Mapping, type PageMapping } from '../../shared/domain/mapping.ts';
import { indexSections } from '../../shared/domain/url-patterns.ts';

/** The section for a URL: by its `url_patterns`, one for every page, or none. */
export type RowPages = (url: string) => 'named' | 'any' | 'none';

/** The section that reads the page at a URL; null: none does. */
export type SectionOf = (url: string) => PageMapping | null;

/** Compiles the patterns, and loads their library only if there are some. */
export async function compileSections(mapping: Mapping): Promise<SectionOf> {
  const hasPatterns = mapping.pages.some(({ urlPatterns }) => urlPatterns.length > 0);
  const compile = hasPatterns ? (await import('../../shared/adapters/steps/regex.ts')).compilePattern : null;
  return indexSections(
    mapping.pages.map((page) => ({ value: page, patterns: page.urlPatterns })),
    (pattern) => compile!(pattern),
  );
}

/** For a mapping with `rows`; null for one that gives one row a product. */
export async function compileRowPages(mapping: Mapping): Promise<RowPages | null> {
  if (!hasRows(mapping)) return null;
  const sectionOf = await compileSections(mapping);
  return (url) => {
    const section = sectionOf(url);
    if (section === null) return 'none';
    return section.urlPatterns.length > 0 ? 'named' : 'any';
  };
}
