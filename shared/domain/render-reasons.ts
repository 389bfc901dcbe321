/** The table of reasons as text. */
import { adviceOf, nameOf, type ReasonRow } from './reason-row.ts';
import { plain } from './terminal-text.ts';
import { renderTable } from './text-table.ts';

/** Below each row what it means and what to do; '' without rows. */
export function renderReasons(rows: readonly ReasonRow[]): string {
  if (rows.length === 0) return '';
  const isWaiting = rows.some(({ waiting }) => waiting > 0);
  const [head = '', ...lines] = renderTable(
    ['no row because of', 'products', ...(isWaiting ? ['waiting'] : []), 'share', 'example'],
    rows.map((row) => [
      plain(nameOf(row), 100),
      row.products,
      ...(isWaiting ? [row.waiting] : []),
      shareText(row.share),
      row.url === null ? null : plain(row.url, 200),
    ]),
  ).split('\n');
  return [head, ...lines.flatMap((line, i) => [line, `    ${plain(adviceOf(rows[i]!), 600)}`])].join('\n');
}

const shareText = (share: number): string => `${(share * 100).toFixed(1)} %`;
