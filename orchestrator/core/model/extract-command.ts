/** The command that shows what a page has. Pure. */
import { asksByPost } from '../../../shared/adapters/requests/page-requests.ts';
import { shellWord } from '../../../shared/domain/shell-word.ts';
import type { RunSettings } from './run-settings.ts';

/** By its URL; of a site that is asked by POST by the product, because the URL is not all of its request. */
export function extractCommandOf(
  settings: Pick<RunSettings, 'site' | 'mapping'>,
  { url = null, id = null }: { url?: string | null; id?: string | null } = {},
): string {
  return asksByPost(settings)
    ? `orchestrator extract --id ${id === null ? 'ID' : shellWord(id)}`
    : `orchestrator extract --url ${url === null ? 'URL' : shellWord(url)}`;
}
