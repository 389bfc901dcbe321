/** The document of `product --json`: what has become of one product, night after night. From the database only. */
import { canonicalPath } from '../../../shared/domain/canonical-url.ts';
import { idIn } from '../model/discovery.ts';
import type { Outcome } from '../../../shared/domain/outcome.ts';
import { hasOwnUrls, templatesOf } from '../../../shared/domain/domains.ts';
import { decodePercent } from '../../../shared/domain/percent.ts';
import { identityOf, PageRequests } from '../../../shared/adapters/requests/page-requests.ts';
import { productUrl, SEGMENTS_MARK } from '../../../shared/domain/product.ts';
import { compilePattern } from '../../../shared/adapters/steps/regex.ts';
import { requestIdentity } from '../../../shared/domain/request-identity.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { RunRecord, StoreReaders } from '../model/stores.ts';
import type { History, ProductChange } from '../db/history.ts';

export interface AttemptDocument {
  at: string | null;
  slot: number | null;
  epoch: number | null;
  address: string | null;
  /** The outcome; null for an attempt that did not end in a result: its address was stopped. */
  outcome: Outcome | null;
  /** A FailureReason, or the verdict that stopped the address. */
  reason: string | null;
  detail: string | null;
  evidence: Evidence | null;
}

export type ProductNight = NonNullable<Awaited<ReturnType<typeof readNight>>>;
export type ProductDocument = Awaited<ReturnType<typeof readProduct>>;

/** Newest runs of the database, those of all its sites, among which the nights of a product are sought. */
const LOOKED_AT = 200;
const NIGHTS = 10;
const ROWS = 100;
const CHANGES = 500;

/** `given` is the ID of a product, or the URL of its page. */
export async function readProduct(given: string, { stores, history }: { stores: StoreReaders; history: History }) {
  /** Newest first; runs whose list does not have the product are left out. */
  const nights: ProductNight[] = [];
  const runs = await stores.runs.list(LOOKED_AT);
  const id = (await idByUrl(given, runs, history)) ?? idOf(given, runs);
  for (const run of runs) {
    if (nights.length === NIGHTS) break;
    const night = await readNight(run, id, { stores, history });
    if (night) nights.push(night);
  }
  const rows: { table: string; rows: Record<string, unknown>[] }[] = [];
  const newestByTable = new Map(runs.toReversed().map(({ settings }) => [settings.results.table, settings]));
  /** The changes of each result table with a history, newest first. */
  const changes: { table: string; changes: ProductChange[] }[] = [];
  for (const [table, settings] of newestByTable) {
    rows.push({ table, rows: await history.resultRows(settings, id, ROWS) });
    const changed = await history.changes(settings, id, CHANGES);
    if (changed.length > 0) changes.push({ table, changes: changed });
  }
  return { id, nights, rows, changes };
}

/** The ID of the product that had this URL in one of these runs; null where none had it. */
async function idByUrl(given: string, runs: readonly RunRecord[], history: History): Promise<string | null> {
  if (!URL.canParse(given)) return null;
  const url = requestIdentity({ url: new URL(given).href });
  for (const { id, settings } of runs) {
    const found = hasOwnUrls(settings.site.productUrl) ? await history.productIdAt(id, url) : null;
    if (found !== null) return found;
  }
  return null;
}

/** The ID in the URL of a product page of these runs; any other text is an ID. */
function idOf(given: string, runs: readonly RunRecord[]): string {
  for (const { settings } of runs) {
    const path =
      settings.discover && URL.canParse(given) ? canonicalPath(given, new URL(settings.discover.origin)) : null;
    if (path !== null) return idIn(path, settings.discover!.id) ?? path;
    if (hasOwnUrls(settings.site.productUrl)) continue;
    for (const template of templatesOf(settings.site.productUrl)) {
      const [before = '', after] = template.split(template.includes('{id}') ? '{id}' : SEGMENTS_MARK);
      // The URL of all products is that of none.
      if (after === undefined) continue;
      if (given.length > before.length + after.length && given.startsWith(before) && given.endsWith(after))
        return decodePercent(given.slice(before.length, given.length - after.length));
    }
  }
  return given;
}

async function readNight(run: RunRecord, id: string, { stores, history }: { stores: StoreReaders; history: History }) {
  const product = await history.product(run.id, id);
  if (product === null) return null;
  const { fleet } = stores.of(run.id);
  const [failed, instances, incidents] = await Promise.all([
    history.attempts(run.id, product.n),
    fleet.instances(),
    fleet.incidents(),
  ]);
  const url = productUrl(run.settings.site.productUrl, product.path ?? id);
  const request = new PageRequests(run.settings, compilePattern).ofProduct(url, id);
  const identity = identityOf(request);
  const addressOf = (slot: number | null, epoch: number | null): string | null =>
    instances.find((i) => i.slot === slot && i.epoch === epoch)?.address ?? null;
  const attempts: (Omit<AttemptDocument, 'at'> & { atMs: number | null })[] = [
    ...failed.map((a) => ({ ...a, address: addressOf(a.slot, a.epoch), outcome: 'failed' as const })),
    ...incidents
      .filter(({ evidence }) => (evidence.request?.identity ?? evidence.url) === identity)
      .map(({ slot, epoch, address, verdict, rule, atMs, evidence }) => {
        return { atMs, slot, epoch, address, outcome: null, reason: verdict, detail: `by rule ${rule}`, evidence };
      }),
  ];
  attempts.sort((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0));
  const { outcome, reason, slot, epoch, settledAtMs: atMs, leftOut } = product;
  const detail = leftOut === null ? product.detail : `partial: stored without ${leftOut} of its further pages`;
  // A failed product's last attempt is among those above; one that never was requested has none.
  if (outcome === 'stored' || outcome === 'gone') {
    const address = addressOf(slot, epoch);
    // When its part was loaded, shortly after the page.
    attempts.push({ atMs, slot, epoch, address, outcome, reason: null, detail, evidence: null });
  }
  return {
    run: run.id,
    startedAt: new Date(run.startedAtMs).toISOString(),
    state: run.phase,
    url,
    /** What is sent to the URL; omitted where it is a GET. */
    ...(request.post === undefined ? {} : { request: { method: 'POST' as const, body: request.post.body } }),
    outcome,
    reason,
    detail,
    attempts: attempts.map(({ atMs: ms, ...attempt }): AttemptDocument => ({ ...attempt, at: isoOrNull(ms) })),
  };
}

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
