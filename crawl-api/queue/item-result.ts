/** Turns the result of a product into the line of a part. */
import { describeMissingField, describePoorPage, LITTLE_TEXT_CHARS } from '../../shared/domain/failure-kind.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { FailureReason } from '../../shared/domain/outcome.ts';
import { describeRule, type Evidence } from '../../shared/domain/verdict.ts';
import type { KeyedRow } from '../../shared/domain/mapping.ts';
import type { PageStamp } from '../../shared/domain/validators.ts';
import { countValues } from '../../shared/wire/foreign-json.ts';
import { type ItemResult, MAX_ROWS_BYTES } from '../../shared/wire/part.ts';
import { TOO_MANY_BYTES } from '../extract/page-limits.ts';
import { rowBytes } from '../extract/values.ts';
import type { PageResult } from '../fetch/page-result.ts';
import { createEvidence, type Judgement, LESS_THAN_USUAL, type PageShape } from '../politeness/judgement.ts';
import type { Item } from './items.ts';

/** One visit of a product. */
interface Try {
  item: Item;
  url: string;
  /** When its outcome was known. */
  nowMs: number;
  /** The page's validators, where one page alone gave the rows. */
  stamp?: PageStamp | null;
}

/**
 * The result of one visit. Only a page judged right is stored, or one that has fewer values than usual at its second
 * attempt, too; for the latter the caller makes sure that a canary page is right at this moment.
 */
export function toItemResult(tried: Try, page: PageResult, judgement: Judgement): ItemResult {
  const { item, url } = tried;
  const fail = (reason: FailureReason, detail: string): ItemResult =>
    toFailure(tried, reason, detail, judgement.evidence ?? evidenceOf(reason, url, page));
  switch (page.kind) {
    case 'gone':
      return judgement.kind === 'gone'
        ? { ...commonOf(tried), outcome: 'gone', status: page.reply.status }
        : fail('http-status', `status ${page.reply.status}, judged ${judgement.rule}`);
    case 'unchanged':
      return judgement.kind === 'unchanged'
        ? { ...commonOf(tried), outcome: 'stored', rows: [], unchanged: page.validators }
        : fail('http-status', `status ${page.reply.status}, judged ${judgement.rule}`);
    case 'redirect':
      return fail(
        'redirect',
        `${page.reply.status} to ${page.to.slice(0, 300)}${judgement.evidence ? ` (${describeRule(judgement.evidence)})` : ''}`,
      );
    case 'failed':
      return fail(page.reason, page.detail);
    case 'page': {
      const { rows } = page.extraction;
      const stamp = judgement.kind === 'right' ? tried.stamp : null;
      if (rows !== null && (judgement.kind === 'right' || isLessAgain(item, judgement))) {
        const excess = excessOf(rows);
        if (excess !== null) return fail('too-large', excess);
        return { ...commonOf(tried), outcome: 'stored', rows, ...(stamp ? { page: stamp } : {}) };
      }
      return fail('parse', parseDetail(page, judgement));
    }
  }
}

/** Escapes may take six bytes each, and the key of a row is in it twice. */
const MOST_PER_BYTE = 12;

/** Why the main server would not read these rows in a part, or null. Few rows need more than the estimate. */
function excessOf(rows: readonly KeyedRow[]): string | null {
  const estimate = rows.reduce((sum, { row }) => sum + rowBytes(row), 0);
  if (estimate * MOST_PER_BYTE <= MAX_ROWS_BYTES) return null;
  const json = Buffer.from(JSON.stringify(rows));
  if (json.length > MAX_ROWS_BYTES) return TOO_MANY_BYTES;
  try {
    countValues(json);
    return null;
  } catch (error) {
    return `the rows are too large: ${describeError(error)}`;
  }
}

/**
 * The result of a page whose content looked like a ban, once a canary page has proved that the site serves this
 * address. Final: such a page looks like this each time, and fetching it again would only bring the next address into
 * doubt.
 */
export function toOddPage(result: ItemResult, { rule }: Judgement): ItemResult {
  if (result.outcome !== 'failed') return result;
  const detail =
    `an odd page (${rule}): it looks like a ban, but canary pages are right from this address. ` +
    'If it is a ban, add a text that identifies it to site.ban.patterns; if the product is gone, exclude it in products.query';
  return { ...result, detail: oneLine(detail) };
}

/** True for a page that looks like a ban by its content only; a status or a redirect may differ next time. */
export const isOddContent = (result: ItemResult, { kind }: Judgement): boolean =>
  kind === 'refusal' && result.outcome === 'failed' && result.reason === 'parse';

/** The result of a product that failed, with or without a page. */
export function toFailure(
  tried: Try,
  reason: FailureReason,
  detail: string,
  evidence: Evidence | null = null,
): ItemResult {
  return {
    ...commonOf(tried),
    outcome: 'failed',
    reason,
    detail: oneLine(detail),
    ...(evidence === null ? {} : { evidence }),
  };
}

function commonOf({ item, url, nowMs }: Try) {
  const { n, id, again, first } = item;
  return { n, id, url, at: new Date(nowMs).toISOString(), attempts: again ? 2 : 1, ...firstAttempt(first) };
}

function firstAttempt(first: ItemResult | null): Pick<ItemResult, 'first'> {
  if (first?.outcome !== 'failed') return {};
  const { at, reason, detail, evidence } = first;
  return { first: { at, reason, detail, ...(evidence === undefined ? {} : { evidence }) } };
}

/** A temporary page (the site is busy) lacks values once; a sold-out product lacks them each time. */
function isLessAgain({ first }: Item, { rule }: Judgement): boolean {
  return rule === LESS_THAN_USUAL && first?.outcome === 'failed' && first.evidence?.rule === LESS_THAN_USUAL;
}

function parseDetail({ reply, extraction }: Extract<PageResult, { kind: 'page' }>, { rule }: Judgement): string {
  const { missing } = extraction;
  if (rule === LESS_THAN_USUAL) return 'half of the fields that pages of this site usually fill have no value';
  if (missing === 'mapping') return 'no mapping matches this URL';
  const what =
    missing === null
      ? 'no field has a value'
      : missing === 'rows'
        ? 'the page has neither a record nor the sign that there are none'
        : describeMissingField(missing);
  const values = Object.entries(extraction.rows === null ? (extraction.partial?.row ?? {}) : {});
  const filled = values.filter(([, value]) => value !== null).map(([name]) => name);
  return describePoorPage(what, { isScriptBuilt: isScriptBuilt(reply.shape()), filled });
}

/** Hardly any text, and scripts that may bring it. */
const isScriptBuilt = (shape: PageShape | null): boolean =>
  shape !== null && shape.textChars < LITTLE_TEXT_CHARS && (shape.scripts.trim() !== '' || shape.hasExternalScript);

function evidenceOf(
  reason: FailureReason,
  url: string,
  page: { reply: Parameters<typeof createEvidence>[2] },
): Evidence | null {
  return page.reply === null ? null : createEvidence(reason, url, page.reply);
}

/** Details come from the network: strip control characters and limit the length. */
function oneLine(text: string): string {
  return text
    .slice(0, 2_000)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .toWellFormed()
    .slice(0, 490)
    .toWellFormed()
    .trim();
}
