/** How pages are requested, by the settings of the run. */
import { hasSectionRequests, PageRequests } from '../../shared/adapters/requests/page-requests.ts';
import type { CrawlSettings } from '../../shared/wire/crawl-settings.ts';

/** The library for patterns is loaded only where a section of the mapping has a request of its own. */
export async function compileRequests(settings: Pick<CrawlSettings, 'site' | 'mapping'>): Promise<PageRequests> {
  return new PageRequests(settings, hasSectionRequests(settings.mapping) ? await loadPatterns() : unused);
}

async function loadPatterns() {
  return (await import('../../shared/adapters/steps/regex.ts')).compilePattern;
}

const unused = (): never => {
  throw new Error('no section has a request');
};
