/** A fetched page into the line of a part. */
import type { ItemResult } from '../../shared/wire/part.ts';
import type { PageResult } from '../fetch/page-result.ts';
import type { Item } from './queue-state.ts';

/** The outcome of a try; `nowMs` is when it was known. A page without a required value is failed(parse). */
export function toItemResult(
  item: Item,
  url: string,
  page: Exclude<PageResult, { kind: 'stopped' }>,
  nowMs: number,
): ItemResult {
  const common = {
    n: item.n,
    id: item.id,
    url,
    at: new Date(nowMs).toISOString(),
    attempts: item.state === 'postponed' ? 2 : 1,
  };
  switch (page.kind) {
    case 'gone':
      return { ...common, outcome: 'gone', status: page.status };
    case 'failed':
      return { ...common, outcome: 'failed', reason: page.reason, detail: oneLine(page.detail) };
    case 'page': {
      const { row, missing } = page.extraction;
      if (row !== null) return { ...common, outcome: 'stored', row };
      return { ...common, outcome: 'failed', reason: 'parse', detail: `the required field ${missing} has no value` };
    }
  }
}

/** Details come from the network: no control characters, no more than fits. */
function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .toWellFormed()
    .slice(0, 490)
    .toWellFormed()
    .trim();
}
