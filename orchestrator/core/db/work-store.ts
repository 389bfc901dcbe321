/** WorkStore on knex: the owner of each chunk, and what is left to crawl. */
import { type EpochId, epochKey } from '../../../shared/domain/epoch-id.ts';
import type { HostKey } from '../../../shared/domain/host-key.ts';
import type { Knex } from 'knex';
import { KIND_TEXT, missReason } from '../../../shared/domain/failure-kind.ts';
import type { FailureReason, Outcome, OutcomeCounts } from '../../../shared/domain/outcome.ts';
import { LEFT_ALONE_DETAILS } from '../../../shared/domain/own-url.ts';
import type { Product } from '../../../shared/domain/product.ts';
import { NOT_NEXT_MS } from '../../../shared/domain/sharing.ts';
import { type InstancePhase, isServing } from '../../../shared/domain/states.ts';
import type {
  FailedProduct,
  GrantedShare,
  HostNote,
  HostWish,
  LedgerCounts,
  LedgerMisses,
  NotedHost,
  OpenChunk,
  OwnedChunk,
  RunBinding,
  WorkCounts,
  WorkStore,
} from '../model/stores.ts';
import { type HostsAsker, HostTally, type RunHosts } from '../model/run-hosts.ts';
import { BoundRun } from './bound-run.ts';
import type { Database } from './connect.ts';
import { answersOf, type DataFeature, type NamePages } from './data-feature.ts';
import {
  chunkId,
  type ChunkRow,
  CHUNKS,
  type ChunkWithOpen,
  closeChunk,
  hostOfItem,
  hostsOfItem,
  idOnWire,
  isSlice,
  ITEM_COLUMNS,
  ownUrl,
  ITEMS,
  productOnWire,
  openItems,
  type OpenItem,
  parseChunkId,
  type SliceRow,
} from './chunk-rows.ts';
import { keepGrants } from './grants.ts';
import { claimHosts } from './host-claims.ts';
import { beginRest, moveAllRests, shortenRest } from './host-rests.ts';
import { raiseNotes, readNotes, readWishes } from './host-rows.ts';
import { closeSlices, grantHosts, isDue, keptFor, leaveHosts, nextAfterTransfer } from './host-slices.ts';
import { SiteHosts } from './host-use.ts';
import { inTransaction } from './retry.ts';
import { readSettings } from './run-shape.ts';
import { countOf, inPieces, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';
import { LONG_STATEMENT_MS } from './statement-timeout.ts';

/** Indexes in one IN list. */
const LIST = 1_000;
/** Items read at a time. */
const PAGE = 5_000;

export class KnexWorkStore extends BoundRun implements WorkStore {
  /** Opened once: a run's settings do not change. */
  #pageNames: readonly NamePages[] | null = null;
  readonly #features: readonly DataFeature[];
  readonly #sites = new SiteHosts();
  /** What the run has hosts by, once it was read: a run's settings do not change. */
  #hostKey: { is: HostKey | undefined } | null = null;

  constructor(db: Database, binding: RunBinding, features: readonly DataFeature[]) {
    super(db, binding);
    this.#features = features;
  }

  async counts(): Promise<WorkCounts> {
    const rows = await this.rows<ChunkGroup>((knex) =>
      knex(CHUNKS)
        .where({ run_id: this.id })
        .groupBy('state', 'slot', 'epoch')
        .orderBy(['slot', 'epoch'])
        .select('state', 'slot', 'epoch')
        .count({ chunks: '*' })
        .sum({ products: 'products' })
        .max({ left_ms: 'left_ms' })
        .select(
          knex.raw('max(due_at + left_ms) as end_at'),
          knex.raw('max(case when due_at is null or due_at < ? then left_ms end) as longest_ms', [NOT_NEXT_MS]),
          knex.raw('min(case when due_at is null then 0 when due_at < ? then due_at end) as first_at', [NOT_NEXT_MS]),
        ),
    );
    const counts: WorkCounts = { chunks: 0, waiting: 0, granted: 0, bySlot: [] };
    for (const row of rows) {
      const chunks = toNumber(row.chunks);
      counts.chunks += chunks;
      if (row.state === 'waiting') counts.waiting += chunks;
      const { slot, epoch } = row;
      const isByHost = row.left_ms !== null;
      if (isByHost) {
        counts.byHost ??= { products: 0, longestMs: 0, restUntilMs: 0 };
        if (row.state === 'waiting') counts.byHost.products += toNumber(row.products);
        // A slice that is kept for the owner of its host waits with a slot.
        if (row.state === 'waiting' && slot === null) {
          counts.byHost.longestMs = toNumber(row.longest_ms);
          counts.byHost.restUntilMs = toNumber(row.first_at);
        }
      }
      if (row.state !== 'granted' || slot === null || epoch === null) continue;
      counts.granted += chunks;
      const share: GrantedShare = { slot, epoch, chunks, products: toNumber(row.products) };
      counts.bySlot.push(isByHost ? { ...share, hostsEndMs: toNumber(row.end_at) } : share);
    }
    return counts;
  }

  waiting(limit: number, except: Pick<ReadonlySet<string>, 'has' | 'size'>): Promise<OpenChunk[]> {
    return this.#open(async (knex) => {
      const free = knex(CHUNKS)
        .where({ run_id: this.id, state: 'waiting', slot: null })
        .where((due) => void due.whereNull('due_at').orWhere('due_at', '<=', this.now()))
        .orderBy('idx')
        .limit(limit + except.size);
      return (await rowsOf<ChunkRow>(free)).filter((row) => !except.has(chunkId(row))).slice(0, limit);
    });
  }

  nextSlices(at: EpochId, limit: number): Promise<OpenChunk[]> {
    return this.#open(async (knex) => {
      const kept = knex(CHUNKS)
        .where({ ...this.key(at), state: 'waiting' })
        .where('due_at', '<=', this.now())
        .orderBy('idx')
        .limit(limit);
      let room = limit;
      return (await rowsOf<ChunkRow>(kept)).filter(({ products }, i) => (room -= products) >= 0 || i === 0);
    });
  }

  /** These chunks with their open products; those that have none are closed. */
  async #open(select: (knex: Knex) => Promise<ChunkRow[]>): Promise<OpenChunk[]> {
    const { chunks, settled } = await this.#openUnsettled(select);
    if (settled.length === 0) return chunks;
    // Each is closed together with what it means to the next slice of its host, which may be due as well.
    await inTransaction(this.db, (trx) => closeSlices(trx, this.id, settled));
    return this.#open(select);
  }

  /** Closes what has nothing left to crawl; slices of hosts, which it does not close, are `settled`. */
  #openUnsettled(select: (knex: Knex) => Promise<ChunkRow[]>): Promise<{ chunks: OpenChunk[]; settled: SliceRow[] }> {
    const runId = this.id;
    return this.query(async (knex) => {
      const wanted = await select(knex);
      const chunks: OpenChunk[] = [];
      const settled: SliceRow[] = [];
      /** Of the products that instances know by something else. */
      const ownIds = new Map<number, string>();
      for (const { chunk, open } of await openItems(knex, runId, wanted)) {
        const products = open.map(productOnWire);
        for (const p of open) if (p.path !== null) ownIds.set(p.n, p.product_id);
        if (products.length > 0) chunks.push({ id: chunkId(chunk), products });
        else if (isSlice(chunk)) settled.push(chunk);
        // A late result has settled its last product: an open chunk would keep the run from ending.
        else await closeChunk(knex, runId, chunk);
      }
      const products = chunks.flatMap((chunk) => chunk.products);
      this.#pageNames ??= await answersOf(
        this.#features.map(({ productFeed }) => productFeed?.openPageNames?.(knex, { db: this.db, runId })),
      );
      const idOf = ({ n, id }: Product): string => ownIds.get(n) ?? id;
      for (const namePages of this.#pageNames) await namePages(knex, { products, idOf }, this.now());
      return { chunks, settled };
    });
  }

  grant(at: EpochId, chunkIds: readonly string[], limitChunks: number): Promise<string[]> {
    const asked = chunkIds.map(parseChunkId).filter((c) => c !== null);
    if (asked.length === 0) return Promise.resolve([]);
    const key = this.key(at);
    const { run_id, slot, epoch } = key;
    const nowMs = this.now();
    return this.write(async (trx) => {
      // Chunks of one instance are returned entirely before or entirely after.
      const phase = await lockInstance(trx, key);
      const owned = await countOf(trx(CHUNKS).where({ ...key, state: 'granted' }));
      const mayTake = phase !== null && isServing(phase);
      let room = mayTake ? limitChunks - owned : 0;
      const indexes = asked.map((c) => c.index);
      const rows = await lockChunks(trx, run_id, indexes);
      const granted: string[] = [];
      const taken: number[] = [];
      const byHost: ChunkRow[] = [];
      for (const { index, generation } of asked) {
        const row = rows.get(index);
        if (!row || row.generation !== generation || taken.includes(index)) continue;
        if (isOwn(row, key)) granted.push(chunkId(row));
        if (row.state !== 'waiting' || !isDue(row, nowMs)) continue;
        const owner = keptFor(row);
        if (owner === null ? room <= 0 : !mayTake || epochKey(owner) !== epochKey(key)) continue;
        if (owner === null) room--;
        taken.push(index);
        if (row.left_ms !== null) byHost.push(row);
        granted.push(chunkId(row));
      }
      if (byHost.length > 0) {
        const hostKey = await this.#hostKeyOf(trx);
        const claimant = { db: this.db, key, fence: this.fence, sites: this.#sites, nowMs, hostKey };
        const free = await claimHosts(trx, claimant, byHost);
        await grantHosts(trx, key, free, nowMs);
        const indexes = free.map(({ idx }) => idx);
        await keepGrants(trx, key, indexes);
        const refused = new Set(byHost.filter(({ idx }) => !indexes.includes(idx)).map(chunkId));
        return granted.filter((id) => !refused.has(id));
      }
      const values = { state: 'granted', slot, epoch, granted_at: nowMs };
      for (const piece of inPieces(taken, LIST))
        await trx(CHUNKS).where({ run_id, state: 'waiting' }).whereIn('idx', piece).update(values);
      await keepGrants(trx, key, taken);
      return granted;
    });
  }

  returnChunks(at: EpochId, freeAtMs?: number): Promise<number> {
    const key = this.key(at);
    return this.write(async (trx) => {
      await lockInstance(trx, key);
      const owned = { ...key, state: 'granted' };
      const rows = await rowsOf<ChunkRow>(trx(CHUNKS).where(owned).orderBy('idx').forUpdate());
      const chunks = await openItems(trx, key.run_id, rows);
      const dueAtMs = freeAtMs ?? null;
      const products = await leaveHosts(trx, key, chunks, {
        isGone: true,
        change: () => nextGeneration(trx, key.run_id, chunks, dueAtMs),
        nextOf: () => Promise.resolve({ owner: null, dueAt: dueAtMs }),
      });
      const isByHost = rows.every(({ left_ms }) => left_ms !== null);
      if (freeAtMs !== undefined && isByHost) await beginRest(trx, key, freeAtMs);
      return products;
    });
  }

  freeHosts(at: EpochId, freeAtMs: number): Promise<void> {
    return this.write((trx) => shortenRest(trx, this.key(at), freeAtMs));
  }

  moveRests(byMs: number, afterMs: number): Promise<void> {
    return this.write((trx) => moveAllRests(trx, this.id, byMs, afterMs));
  }

  noteHosts(at: EpochId, notes: readonly HostNote[]): Promise<void> {
    if (notes.length === 0) return Promise.resolve();
    return this.write((trx) => raiseNotes(trx, this.key(at), notes));
  }

  hostNotes(chunkIds: readonly string[]): Promise<NotedHost[]> {
    const asked = new Set(chunkIds);
    const indexes = chunkIds.map(parseChunkId).flatMap((c) => (c === null ? [] : [c.index]));
    if (indexes.length === 0) return Promise.resolve([]);
    return this.query(async (knex) => {
      const rows: ChunkRow[] = [];
      for (const piece of inPieces(indexes, LIST))
        rows.push(...(await rowsOf<ChunkRow>(knex(CHUNKS).where({ run_id: this.id }).whereIn('idx', piece))));
      const chunks = await openItems(
        knex,
        this.id,
        rows.filter((row) => asked.has(chunkId(row))),
      );
      const key = await this.#hostKeyOf(knex);
      const hosts = new Set(chunks.flatMap(({ open }) => open.flatMap((item) => hostsOfItem(item, key))));
      return readNotes(knex, [...hosts], key);
    });
  }

  hostWishes(sinceMs: number): Promise<HostWish[]> {
    return this.query(async (knex) => readWishes(knex, { runId: this.id, sinceMs, key: await this.#hostKeyOf(knex) }));
  }

  chunksOf(at: EpochId): Promise<OwnedChunk[]> {
    const key = this.key(at);
    return this.query(async (knex) => {
      const rows = await rowsOf<ChunkRow>(
        knex(CHUNKS)
          .where({ ...key, state: 'granted' })
          .orderBy([
            { column: 'granted_at', order: 'desc' },
            { column: 'idx', order: 'desc' },
          ]),
      );
      const chunks = await openItems(knex, key.run_id, rows);
      return chunks
        .map(({ chunk, open }) => ({ id: chunkId(chunk), open: open.length }))
        .filter(({ open }) => open > 0);
    });
  }

  transferChunks(at: EpochId, chunkIds: readonly string[]): Promise<number> {
    const asked = new Set(chunkIds);
    const indexes = chunkIds.map(parseChunkId).flatMap((c) => (c === null ? [] : [c.index]));
    if (indexes.length === 0) return Promise.resolve(0);
    const key = this.key(at);
    return this.write(async (trx) => {
      await lockInstance(trx, key);
      const rows = await lockChunks(trx, key.run_id, indexes);
      const owned = [...rows.values()].filter((row) => asked.has(chunkId(row)) && isOwn(row, key));
      const chunks = await openItems(trx, key.run_id, owned);
      return leaveHosts(trx, key, chunks, {
        isGone: false,
        change: () => nextGeneration(trx, key.run_id, chunks, null),
        nextOf: (sliceOf) => nextAfterTransfer(trx, key, sliceOf),
      });
    });
  }

  async anyStored(): Promise<string | null> {
    const [row] = await this.rows<OpenItem>((knex) =>
      knex(ITEMS).where({ run_id: this.id, outcome: 'stored' }).select(ITEM_COLUMNS).limit(1),
    );
    return row === undefined ? null : idOnWire(row);
  }

  async failedProducts(after: number, limit: number, reasons?: readonly FailureReason[]): Promise<FailedProduct[]> {
    const rows = await this.rows<OpenItem & Pick<FailedProduct, 'reason' | 'detail'>>((knex) => {
      const failed = knex(ITEMS).where({ run_id: this.id, outcome: 'failed' }).where('n', '>', after);
      if (reasons) void failed.whereIn('reason', [...reasons]);
      const some = failed
        .orderBy('n')
        .limit(limit)
        .select(...ITEM_COLUMNS, 'reason', 'detail');
      // Only a few of a million products may have failed: finding them is one long scan.
      return some.options({ timeout: LONG_STATEMENT_MS });
    });
    return rows.map((row) => {
      const { n, reason, detail } = row;
      const url = ownUrl(row);
      return { n, id: url === null ? idOnWire(row) : row.product_id, ...(url === null ? {} : { url }), reason, detail };
    });
  }

  failRest(reason: FailureReason): Promise<number> {
    const run_id = this.id;
    const nowMs = this.now();
    return this.write(async (trx) => {
      const failed = await trx(ITEMS)
        .where({ run_id })
        .whereNull('outcome')
        .update({ outcome: 'failed', reason, settled_at: nowMs })
        .options({ timeout: LONG_STATEMENT_MS });
      await trx(CHUNKS).where({ run_id, state: 'waiting' }).update({ state: 'closed', slot: null, epoch: null });
      return failed;
    });
  }

  async outcomes(): ReturnType<WorkStore['outcomes']> {
    const groups = await this.#countItems(['outcome', 'reason', 'link_page']);
    const linkPages = groups.filter(({ link_page: isLinkPage }) => isLinkPage !== null);
    return { ...sumOfItems(groups), ...(linkPages.length === 0 ? {} : { linkPages: sumOfItems(linkPages) }) };
  }

  async misses(limit: number): Promise<LedgerMisses[]> {
    const { whole, most, end } = KIND_TEXT;
    const after = `INSTR(detail, '${end}')`;
    // As kindText cuts it.
    const length =
      `CASE WHEN reason IN (${whole.map((reason) => `'${reason}'`).join(', ')}) THEN ${most.whole} ` +
      `WHEN ${after} BETWEEN 1 AND ${most.clause} THEN ${after} + ${end.length - 1} ELSE ${most.clause} END`;
    return this.query(async (knex) => {
      const groups = await rowsOf<MissGroup>(
        knex(ITEMS)
          .where({ run_id: this.id })
          .whereIn('outcome', ['failed', 'gone'])
          .groupBy('outcome', 'reason', 'said')
          .orderBy([{ column: 'items', order: 'desc' }, 'first_n'])
          .limit(limit)
          .select('outcome', 'reason', knex.raw(`SUBSTR(detail, 1, ${length}) AS said`))
          .count({ items: '*' })
          .min({ first_n: 'n' })
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      const firsts = groups.map(({ first_n: n }) => toNumber(n));
      const rows = await rowsOf<OpenItem>(
        knex(ITEMS).where({ run_id: this.id }).whereIn('n', firsts).select(ITEM_COLUMNS),
      );
      const examples = new Map(rows.map((row) => [row.n, idOnWire(row)]));
      return groups.flatMap((group): LedgerMisses[] => {
        const reason = missReason(group.outcome, group.reason);
        const example = examples.get(toNumber(group.first_n));
        if (reason === null || example === undefined) return [];
        return [{ reason, detail: group.said, products: toNumber(group.items), example }];
      });
    });
  }

  async leftAlone(): Promise<number> {
    const { whole, end } = LEFT_ALONE_DETAILS;
    const [row] = await this.rows<{ items: SqlNumber }>((knex) =>
      knex(ITEMS)
        .where({ run_id: this.id, outcome: 'failed', reason: 'redirect' })
        .where((said) => void said.whereIn('detail', whole).orWhere('detail', 'like', `%${end}`))
        .count({ items: '*' })
        .options({ timeout: LONG_STATEMENT_MS }),
    );
    return toNumber(row?.items ?? 0);
  }

  async hosts(asker: HostsAsker): Promise<RunHosts> {
    const tally = new HostTally();
    const key = await this.query((knex) => this.#hostKeyOf(knex));
    type Row = Pick<OpenItem, 'n' | 'path' | 'moved_to'> & { outcome: Outcome | null; reason: FailureReason | null };
    for (let after: number | undefined = 0; after !== undefined;) {
      const from: number = after;
      const rows: Row[] = await this.rows<Row>((knex) =>
        knex(ITEMS)
          .where({ run_id: this.id })
          .where('n', '>', from)
          .orderBy('n')
          .limit(PAGE)
          .select('n', 'path', 'moved_to', 'outcome', 'reason')
          .options({ timeout: LONG_STATEMENT_MS }),
      );
      for (const row of rows) tally.add(hostOfItem(row, key), row.outcome, row.reason);
      after = rows.length < PAGE ? undefined : rows.at(-1)?.n;
    }
    return tally.result(await this.query((knex) => readNotes(knex, tally.openHosts(), key)), asker);
  }

  async outcomesBySlot(): Promise<(EpochId & OutcomeCounts)[]> {
    const bySlot = new Map<string, EpochId & OutcomeCounts>();
    for (const { slot, epoch, outcome, items } of await this.#countItems(['slot', 'epoch', 'outcome'])) {
      // The main server settled them, or nothing has.
      if (slot === null || epoch === null || outcome === null) continue;
      const key = epochKey({ slot, epoch });
      const counts = bySlot.get(key) ?? { slot, epoch, stored: 0, gone: 0, failed: 0 };
      counts[outcome] += toNumber(items);
      bySlot.set(key, counts);
    }
    return [...bySlot.values()];
  }

  async #hostKeyOf(knex: Knex): Promise<HostKey | undefined> {
    this.#hostKey ??= { is: (await readSettings(knex, this.id)).site.hostKey };
    return this.#hostKey.is;
  }

  /** Products by the values of these columns, in their order. */
  #countItems(columns: readonly (keyof ItemGroup)[]): Promise<ItemGroup[]> {
    return this.rows((knex) =>
      knex(ITEMS)
        .where({ run_id: this.id })
        .groupBy(columns)
        .orderBy([...columns])
        .select(columns)
        .count({ items: '*' })
        .options({ timeout: LONG_STATEMENT_MS }),
    );
  }
}

function sumOfItems(groups: readonly ItemGroup[]): LedgerCounts {
  const counts: LedgerCounts = { planned: 0, open: 0, stored: 0, gone: 0, failed: 0, reasons: {} };
  const { reasons } = counts;
  for (const row of groups) {
    const items = toNumber(row.items);
    counts.planned += items;
    counts[row.outcome ?? 'open'] += items;
    if (row.outcome === 'failed' && row.reason) reasons[row.reason] = (reasons[row.reason] ?? 0) + items;
  }
  return counts;
}

/** Chunks with the same state and owner. */
interface ChunkGroup extends Pick<ChunkRow, 'state' | 'slot' | 'epoch' | 'left_ms'> {
  chunks: SqlNumber;
  products: SqlNumber;
  /** When the last of their hosts ends, by what is due. */
  end_at: SqlNumber | null;
  /** The longest host of those that are offered. */
  longest_ms: SqlNumber | null;
  /** When the first of them is. */
  first_at: SqlNumber | null;
}

interface ItemGroup {
  slot: number | null;
  epoch: number | null;
  outcome: Outcome | null;
  reason: FailureReason | null;
  link_page: number | null;
  items: SqlNumber;
}

interface MissGroup {
  outcome: Outcome;
  reason: FailureReason | null;
  said: string | null;
  items: SqlNumber;
  first_n: SqlNumber;
}

/** Locks the instance's row until the commit; null when there is none. */
async function lockInstance(trx: Knex.Transaction, key: ReturnType<BoundRun['key']>): Promise<InstancePhase | null> {
  const rows = trx('crawlfleet_instances').where(key).forUpdate();
  return (await rowOf<{ phase: InstancePhase }>(rows.first('phase')))?.phase ?? null;
}

const isOwn = (row: ChunkRow, { slot, epoch }: EpochId): boolean =>
  row.state === 'granted' && row.slot === slot && row.epoch === epoch;

/** The rows of these chunks, locked in index order, so that two grants wait for each other instead of deadlocking. */
async function lockChunks(
  trx: Knex.Transaction,
  runId: string,
  indexes: readonly number[],
): Promise<Map<number, ChunkRow>> {
  const found = new Map<number, ChunkRow>();
  const ordered = [...new Set(indexes)].sort((a, b) => a - b);
  for (const piece of inPieces(ordered, LIST)) {
    const query = trx(CHUNKS).where({ run_id: runId }).whereIn('idx', piece).orderBy('idx').forUpdate();
    for (const row of await rowsOf<ChunkRow>(query)) found.set(row.idx, row);
  }
  return found;
}

/**
 * Makes those of these locked chunks wait again that have products without outcome; returns how many products.
 * @param dueAtMs of those with whole hosts; slices of a host are not offered yet
 */
async function nextGeneration(
  trx: Knex.Transaction,
  runId: string,
  chunks: readonly ChunkWithOpen[],
  dueAtMs: number | null,
): Promise<number> {
  let products = 0;
  for (const { chunk, open } of chunks) {
    if (open.length === 0) continue;
    products += open.length;
    const due = chunk.left_ms === null ? {} : { due_at: isSlice(chunk) ? NOT_NEXT_MS : dueAtMs };
    const unowned = { slot: null, epoch: null, granted_at: null, ...due };
    await trx(CHUNKS)
      .where({ run_id: runId, idx: chunk.idx })
      .update({ state: 'waiting', generation: chunk.generation + 1, products: open.length, ...unowned });
  }
  return products;
}
