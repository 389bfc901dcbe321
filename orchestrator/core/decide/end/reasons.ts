/**
 * The table of reasons: why products have no row, how many, one example, and what to do. The instances' counts make it
 * while the run works, the ledger when it ends; terminal, page, `explain`, `report`, notices and metrics show it. Pure.
 */
import {
  failureKind,
  ledgerDetail,
  LITTLE_TEXT_CHARS,
  type MissCount,
  type MissReason,
  signOf,
  wordsOf,
} from '../../../../shared/domain/failure-kind.ts';
import type { FailureReason, OutcomeCounts } from '../../../../shared/domain/outcome.ts';
import { asksByPost } from '../../../../shared/adapters/requests/page-requests.ts';
import { hasOwnUrls } from '../../../../shared/domain/domains.ts';
import { productUrl } from '../../../../shared/domain/product.ts';
import { formatDuration, formatSize } from '../../../../shared/domain/quantity.ts';
import { nameOf, type ReasonRow } from '../../../../shared/domain/reason-row.ts';
import { isGivenUp } from '../../model/instance-state.ts';
import type { InstanceRecord, LedgerMisses, RunRecord } from '../../model/stores.ts';
import { extractCommandOf } from '../../model/extract-command.ts';
import { tryAgain } from '../../model/try-again.ts';

/** The ledger has the ID of an example. */
type Miss = MissCount & { id?: string };

type Run = Pick<RunRecord, 'id' | 'settings' | 'request'>;

/** Groups that the ledger is asked for; what is left is counted by reason alone. */
export const MAX_LEDGER_MISSES = 200;
/** Further kinds are counted by reason alone. */
const MAX_SIGNS = 12;
const NEARLY_ALL = 0.9;
const MOST = 0.5;
/** The fewest products tried: while a run works, fewer gone products prove nothing. */
const LEAST_TRIED = 5;

/** The reasons while the run works, from the heartbeats. */
export function liveReasons(run: Run, instances: readonly InstanceRecord[]): ReasonRow[] {
  const misses = missesOf(instances);
  let tried = misses.reduce((sum, { waiting }) => sum + waiting, 0);
  for (const { progress } of instances) if (progress) tried += progress.stored + progress.gone + progress.failed;
  const rows = reasonRows(run, { misses, tries: misses, tried });
  return tried >= LEAST_TRIED ? rows : rows.filter(({ reason }) => reason !== 'gone');
}

/** The reasons at the end, from the ledger, with what the instances have seen before they gave up as evidence. */
export function finalReasons(
  run: Run,
  instances: readonly InstanceRecord[],
  ledger: readonly LedgerMisses[],
  outcomes: OutcomeCounts & { reasons: Partial<Record<FailureReason, number>> },
): ReasonRow[] {
  const misses = ledger.map(({ reason, detail, products, example: id }): Miss => {
    return { reason, detail, products, waiting: 0, url: productUrl(run.settings.site.productUrl, id), id };
  });
  for (const [reason, products] of Object.entries({ ...outcomes.reasons, gone: outcomes.gone }) as [
    MissReason,
    number,
  ][]) {
    const listed = misses.reduce((sum, miss) => sum + (miss.reason === reason ? miss.products : 0), 0);
    if (products > listed) misses.push({ reason, detail: null, products: products - listed, waiting: 0, url: null });
  }
  const tries = goneReplies(instances) ?? instances.flatMap(({ progress }) => progress?.misses ?? []);
  const { stored, gone, failed } = outcomes;
  return reasonRows(run, { misses, tries, tried: stored + gone + failed });
}

/**
 * Nearly every reply was a 404. A ban, too, makes an instance forget what its products came to: the replies stay
 * counted.
 */
function goneReplies(instances: readonly InstanceRecord[]): MissCount[] | null {
  let [gone, all] = [0, 0];
  for (const { progress } of instances)
    for (const [reply, n] of Object.entries(progress?.replies ?? {})) {
      all += n;
      if (reply === '404') gone += n;
    }
  const url = instances.flatMap(({ progress }) => progress?.misses ?? []).find(({ reason }) => reason === 'gone')?.url;
  const detail = ledgerDetail({ outcome: 'gone', status: 404 });
  return gone < NEARLY_ALL * all || all === 0
    ? null
    : [{ reason: 'gone', detail, products: gone, waiting: 0, url: url ?? null }];
}

/** Products that wait for their second try or for a proof, whatever they wait for. */
export const waitingProducts = (instances: readonly InstanceRecord[]): number =>
  missesOf(instances).reduce((sum, { waiting }) => sum + waiting, 0);

/** What waits at an instance that is given up waits at others now, for its first try. */
function missesOf(instances: readonly InstanceRecord[]): MissCount[] {
  return instances.flatMap((record) => {
    const misses = record.progress?.misses ?? [];
    return isGivenUp(record) ? misses.map((miss) => ({ ...miss, waiting: 0 })) : misses;
  });
}

interface Facts {
  misses: readonly Miss[];
  /** What products came to that were tried, whatever has become of them since. */
  tries: readonly MissCount[];
  /** Products that were tried or have an outcome. */
  tried: number;
}

/** The most frequent first. */
function reasonRows(run: Run, { misses, tries, tried }: Facts): ReasonRow[] {
  const groups = grouped(misses).filter(({ reason, count }) => reason !== 'gone' || count >= MOST * tried);
  const seen = grouped(tries);
  return groups.map((group): ReasonRow => {
    const { reason, sign, products, waiting, count } = group;
    const share = tried === 0 ? 0 : Math.min(1, count / tried);
    const row = { reason, sign, products, waiting, share };
    const [cause] = seen;
    // No instance has requested these: those that were tried say why.
    if (reason !== 'site-changed' || cause === undefined)
      return { ...row, url: group.url, evidence: evidenceOf(group), todo: todoOf(run, group, share) };
    const all = seen.reduce((sum, own) => sum + own.count, 0);
    const evidence = `${cause.count} of the ${all} tried came to ${nameOf(cause)}`;
    return { ...row, url: cause.url, evidence, todo: todoOf(run, cause, cause.count / all) };
  });
}

interface Group {
  reason: MissReason;
  sign: string | null;
  field: string | null;
  status: number | null;
  products: number;
  waiting: number;
  /** Both. */
  count: number;
  /** How many of those pages have little text and scripts. */
  scriptBuilt: number;
  /** The detail of the largest part. */
  detail: string | null;
  filled: string | null;
  url: string | null;
  id: string | null;
}

function grouped(misses: readonly Miss[]): Group[] {
  const bySize = [...misses].filter((m) => sizeOf(m) > 0).sort((a, b) => sizeOf(b) - sizeOf(a));
  const groups = new Map<string, Group>();
  for (const { reason, detail, products, waiting, url, id = null } of bySize) {
    const { status, field, filled, isScriptBuilt, ...kind } = failureKind(reason, detail);
    const own = signOf({ status, field, filled, isScriptBuilt, ...kind });
    const isKnown = groups.has(`${reason} ${own}`);
    const sign = isKnown || groups.size < MAX_SIGNS ? own : null;
    const key = `${reason} ${sign}`;
    const count = products + waiting;
    const group = groups.get(key);
    if (group) {
      group.products += products;
      group.waiting += waiting;
      group.count += count;
      if (isScriptBuilt) group.scriptBuilt += count;
      group.url ??= url;
      group.id ??= id;
    } else {
      const scriptBuilt = isScriptBuilt ? count : 0;
      groups.set(key, { reason, sign, field, status, products, waiting, count, scriptBuilt, detail, filled, url, id });
    }
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

const sizeOf = ({ products, waiting }: MissCount): number => products + waiting;

const LITTLE_TEXT = `under ${LITTLE_TEXT_CHARS} characters of text, and scripts`;

function evidenceOf({ reason, field, status, count, scriptBuilt, detail, filled }: Group): string | null {
  if (field !== null) {
    const lack = `${count} of ${count} lack ${field}`;
    if (scriptBuilt === count) return `${lack} and have ${LITTLE_TEXT}`;
    if (scriptBuilt > 0) return `${lack}, ${scriptBuilt} have ${LITTLE_TEXT}`;
    return filled === null ? lack : `${lack} and have ${filled}`;
  }
  if (detail === null || reason === 'gone') return null;
  const words = wordsOf(detail);
  return words === '' || words === `status ${status}` ? null : words;
}

/** What helps by the facts. The command that tries again is named only where it can. */
function todoOf(run: Run, group: Group, share: number): string {
  const { reason, field, status, count, scriptBuilt } = group;
  const extract = extractCommandOf(run.settings, group);
  const { site } = run.settings;
  const again = tryAgain(run, ` --reason ${reason}`);
  // Those left by a site that has changed are under another reason.
  const corrected = tryAgain(run);
  if (reason === 'gone' || status === 404) return goneTodo(run, share);
  // A browser opens pages by GET.
  if (scriptBuilt >= MOST * count && scriptBuilt > 0 && !asksByPost(run.settings))
    return site.render === 'http'
      ? `set site.render: auto, then ${corrected}`
      : `the browser finds no more either: see with ${extract} --render browser what it gets`;
  if (field !== null)
    return `${extract} shows what the page has: correct the selector of ${field} or make it optional, then ${corrected}`;
  switch (reason) {
    case 'http-status':
      return status !== null && status >= 500
        ? `these pages are out of order at the site: open one in a browser; later ${again}`
        : `the site refuses these pages: open one in a browser; where it is right to refuse, leave them out of the product list`;
    case 'network':
      return `check whether the site answers elsewhere; later ${again}`;
    case 'timeout':
      return `set site.timeout above ${formatDuration(site.timeoutMs)} if the pages are slow in a browser, too; then ${again}`;
    case 'redirect':
      return `open one in a browser: correct the address or leave them out of the product list`;
    case 'content-type':
      return `these are no pages that a mapping can read: leave them out of the product list`;
    case 'too-large':
      return `set site.max_page_bytes above ${formatSize(site.maxPageBytes)} if the pages are as they should be; then ${again}`;
    case 'parse':
      return `${extract} shows what the page has: correct the mapping, then ${corrected}`;
    case 'robots':
      return `robots.txt forbids them or could not be read: leave them out of the product list, or ask the site`;
    case 'banned':
      return `the evidence is under \`bans\` in the report: make site.interval longer than ${formatDuration(site.intervalMs)} or ask the site; then, not at once, ${again}`;
    case 'site-changed':
      return `${extract} shows what a page has now: correct the mapping, then ${corrected}`;
    case 'poison':
      return `the program died twice at these pages: ${extract} shows where; leave them out of the product list and report the fault`;
    case 'lost-instance':
      return `orchestrator explain ${run.id} says why instances were lost; ${again}`;
    case 'upload':
      return `make the bucket usable (orchestrator doctor), then ${again}`;
    case 'load':
      return `the result table refuses the values: correct the column or the mapping, then ${again}`;
    case 'assert':
      return `${extract} shows what the page has: correct the mapping or its assert, then ${corrected}`;
    case 'deadline':
      return `${again} crawls the rest; for the next night orchestrator explain ${run.id} says how many instances it takes`;
    case 'budget':
      return `raise run.max_cost, then ${again}`;
    case 'cancelled':
      return run.request === 'cancel' ? 'nothing: the run was cancelled' : `${again} crawls the rest`;
  }
}

function goneTodo({ settings }: Run, share: number): string {
  if (settings.discover)
    return 'the addresses that were found are out of date: open one in a browser, and check discover.seeds';
  if (hasOwnUrls(settings.site.productUrl))
    return 'open one in a browser: if the site has the product, correct its URL in your table; otherwise the product list is out of date';
  return share >= NEARLY_ALL
    ? 'site.product_url makes addresses that the site does not have: compare it with the address of a product in a browser, correct it, then orchestrator run'
    : 'open one in a browser: if the site has the product, correct site.product_url; otherwise the product list is out of date';
}
