/** A notice as a mail that is understood without a terminal. Pure. */
import { showLocal } from '../../../shared/domain/local-time.ts';
import { advicesOf } from '../../../shared/domain/reason-row.ts';
import { renderReasons } from '../../../shared/domain/render-reasons.ts';
import { printable } from '../../../shared/domain/terminal-text.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { type Notice, shellLine } from './notice.ts';

/** Plain text, ended by a line break. What pages and AWS have said in it is on lines of its own and escaped. */
export function mailOf(notice: Notice): { subject: string; text: string } {
  const { reasons = [], moreReasons = 0, hint, bans, notes = [] } = notice;
  // Advice that is in the table below is not given twice.
  const todo = hint === advicesOf(reasons) ? '' : hint;
  const parts = [
    notice.summary,
    section('What to do', todo),
    section(
      'Why products have no row, and what to do',
      [renderReasons(reasons), moreOf(moreReasons)].filter(Boolean).join('\n'),
    ),
    section(bans === undefined ? '' : `Bans: ${bans.count}`, renderBans(notice)),
    section('Notes', notes.map((note) => `- ${note}`).join('\n')),
    renderDetails(notice),
  ];
  return { subject: subjectOf(notice), text: `${printable(parts.filter(Boolean).join('\n\n'))}\n` };
}

const section = (title: string, text: string): string => (text === '' ? '' : `${title}\n${text}`);

const moreOf = (reasons: number): string =>
  reasons === 0 ? '' : `${reasons} more ${reasons === 1 ? 'reason' : 'reasons'}: see the command below`;

function subjectOf(notice: Notice): string {
  const { event, kinds, exit, products, dryRun, schedule } = notice;
  const rows = products === null ? '' : `, ${products.stored} of ${products.planned} products stored`;
  const what = event === 'ended' ? (exit ?? 'ended') + rows : event === 'alarm' ? kinds.join(', ') : event;
  return `${dryRun ? 'DRY-RUN ' : ''}crawlfleet ${schedule} (${shopOf(notice)}): ${what}`;
}

const shopOf = ({ hosts }: Notice): string => (hosts.length === 0 ? 'any hosts' : hosts.join(', '));

function renderBans({ bans, timezone }: Notice): string {
  if (bans === undefined) return '';
  const local = (iso: string | null): string | null => iso && showLocal(Date.parse(iso), timezone);
  const rows = bans.first.map(({ address, rule, at, overAt }) => [address, rule, local(at), local(overAt)]);
  return renderTable(['address', 'rule', 'refused', 'served again'], rows);
}

/** Where it happened and where to look. */
function renderDetails(notice: Notice): string {
  const { timezone, products, cost } = notice;
  const local = (iso: string | null | undefined): string | null => (iso ? showLocal(Date.parse(iso), timezone) : null);
  const counts =
    products && `${products.planned}: ${products.stored} stored, ${products.gone} gone, ${products.failed} failed`;
  const facts: [string, string | null][] = [
    ['Shop', shopOf(notice)],
    ['Table', notice.table],
    ['Products', counts],
    ['Cost', cost === null ? null : `$${cost.toFixed(2)}`],
    ['Exit code', notice.exitCode === null ? null : `${notice.exitCode}, ${notice.exit}`],
    ['Run', notice.run],
    ['Due', local(notice.due.at(-1))],
    ['Started', local(notice.startedAt)],
    ['Ended', local(notice.endedAt)],
    ['Owner', notice.owner],
    ['Main server', notice.mainServer],
    ['Command', shellLine(notice)],
    ['Page', notice.link],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [`${name.padEnd(12)} ${value}`])).join('\n');
}
