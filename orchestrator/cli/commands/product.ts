/** `orchestrator product`: what has become of one product. Reads the database only. */
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { storesOf, withDatabase } from '../../core/lookup/find-run.ts';
import { History, type ProductChange } from '../../core/db/history.ts';
import type { Output } from '../output.ts';
import { plain } from '../../../shared/domain/terminal-text.ts';
import type { ConfigSource } from '../../core/feature.ts';
import { type AttemptDocument, type ProductNight, readProduct } from '../../core/read/product-document.ts';

/** `product` is an ID, or the URL of its page. */
export async function productCommand(options: ConfigSource & { product: string }, output: Output): Promise<ExitCode> {
  return withDatabase(options, output, async (database) => {
    const stores = await storesOf(database);
    const document = await readProduct(options.product, { stores, history: new History(database) });
    const { id, nights, rows, changes } = document;
    output.line(plain(id, MOST));
    if (nights.length === 0) output.line('  none of the last runs has this product');
    else output.line(`  ${plain(nights[0]!.url, MOST)}${describeRequest(nights[0]!)}`);
    for (const { table, rows: own } of rows)
      for (const row of own) output.line(`  ${table}: ${plain(JSON.stringify(row), MOST)}`);
    for (const { table, changes: own } of changes) {
      output.line(`\nchanges in ${table}`);
      for (const change of own) output.line(renderChange(change));
    }
    for (const night of nights) output.line(`\n${renderNight(night)}`);
    output.document(document);
    return EXIT.complete;
  });
}

const MOST = 10_000;

const describeRequest = ({ request }: ProductNight): string =>
  request === undefined ? '' : `  by POST: ${plain(request.body, MOST)}`;

/** Characters of a body that are shown; --json has all that is kept. */
const SHOWN_BODY = 300;

function renderChange({ at, row, field, from, to }: ProductChange): string {
  const what = [row, field].filter((part) => part !== null).join(' ') || 'product';
  const [old, fresh] = [from, to].map((value) => (value === null ? '-' : plain(value, SHOWN_BODY)));
  return `  ${at.slice(0, 16)}Z  ${plain(what, SHOWN_BODY)}: ${old} → ${fresh}`;
}

function renderNight({ run, state, startedAt, outcome, reason, detail, attempts }: ProductNight): string {
  const end = [outcome ?? 'not crawled yet', reason, detail].filter((part) => part !== null).join(', ');
  const head = `${run}  ${startedAt.slice(0, 16)}Z  ${state}: ${plain(end, MOST)}`;
  return [head, ...attempts.map(renderAttempt)].join('\n');
}

function renderAttempt({ at, slot, epoch, address, outcome, reason, detail, evidence }: AttemptDocument): string {
  const place = slot === null ? '' : `  slot ${slot}.${epoch}${address === null ? '' : ` ${address}`}`;
  const what = [outcome ?? 'stopped', reason, detail].filter((part) => part !== null).join(', ');
  const lines = [`  ${at?.slice(11, 19) ?? '?'}${place}  ${plain(what, MOST)}`];
  if (evidence) {
    lines.push(`    ${evidence.rule}, ${evidence.status === null ? 'no reply' : `HTTP ${evidence.status}`}`);
    if (evidence.request) lines.push(`    by POST: ${plain(evidence.request.body, SHOWN_BODY)}`);
    if (evidence.body !== '') lines.push(`    ${plain(evidence.body, SHOWN_BODY)}`);
  }
  return lines.join('\n');
}
