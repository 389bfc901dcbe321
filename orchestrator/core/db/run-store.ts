/** RunStore on knex: the lock, the run's row, its products and chunks, its events. */
import type { Knex } from 'knex';
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { cutChunks } from '../../../shared/domain/sharing.ts';
import type { Evidence } from '../../../shared/domain/verdict.ts';
import type { Progress } from '../../../shared/wire/callbacks.ts';
import { canMoveRun, isRunEnd, OPEN_RUN_PHASES, type RunPhase } from '../../../shared/domain/states.ts';
import type { Balancer } from '../cloud/load-balancer.ts';
import { type AskedPace, type HostPace, hostsOf, type OperatorPace } from '../plan/host-pace.ts';
import { ALL_GONE } from '../decide/ban-policy.ts';
import { pacesOf } from '../decide/site-cap.ts';
import { operatorPaceOf } from '../model/operator-pace.ts';
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import type { FillRates, ListedRun, RunReport, NumberReport, ValueProfile } from '../model/report.ts';
import type { RunSample } from '../model/sample.ts';
import type {
  HostAsker,
  HostInUse,
  HostRecord,
  HostWish,
  NewRun,
  RunEvent,
  RunRecord,
  RunRow,
  RunStore,
  IdList,
  RunToStore,
  StopRequest,
} from '../model/stores.ts';
import { NO_URL } from '../../../shared/domain/own-url.ts';
import { bulkInsert, type SqlValue } from './bulk-insert.ts';
import { BoundRun } from './bound-run.ts';
import type { Database } from './connect.ts';
import { insertEvent, isLastEvent, selectEvents } from './events.ts';
import { lockHostsShared, readHost, readNames, setHost } from './host-rows.ts';
import { claimedHosts } from './host-use.ts';
import { KnexLocks, assertFence, heldLeases, throwIfFenced } from './locks.ts';
import { inDiscardedTransaction, inQuery, inTransaction } from './retry.ts';
import { Columns, rowOf, rowsOf, type SqlNumber, toBoolean, toNumber } from './rows.ts';
import { insertChunks, ITEMS } from './chunk-rows.ts';
import { createStaging } from './staging.ts';
import { NEWEST_FIRST, PUBLISHED, notCancelled } from './newer-runs.ts';
import type { DiscoveryCounts } from '../model/discovery.ts';

const RUNS = 'crawlfleet_runs';

const RUN = new Columns<
  Omit<
    RunRecord,
    'fill' | 'values' | 'numbers' | 'discovery' | 'paces' | 'operatorPace' | 'measuredTailMs' | 'balancers'
  >
>({
  id: 'text',
  parentId: 'text',
  phase: 'text',
  reason: 'text',
  exitCode: 'number',
  startedAtMs: 'number',
  deadlineAtMs: 'number',
  finishedAtMs: 'number',
  prunedAtMs: 'number',
  dryRun: 'boolean',
  settings: 'json',
  plan: 'json',
  planned: 'number',
  duplicates: 'number',
  privateKey: 'text',
  publicKey: 'text',
  request: 'text',
  report: 'json',
});

/** Runs that a look for the last one of a host reads, and how many at once. */
const LOOKED_BACK = 1_000;
const RUNS_AT_ONCE = 50;

type JsonColumn = 'fill' | 'value_profile' | 'numbers' | 'discovery' | 'paces' | 'operator_pace' | 'balancer';
type RunColumns = Record<string, unknown> & Record<JsonColumn, string | null>;

export class KnexRunStore extends KnexLocks implements RunStore {
  async create(run: RunToStore, productIds: IdList, fence: number, nowMs: number): Promise<void> {
    const db = this.db;
    await inQuery(db, (knex) => throwIfFenced(knex, db, fence));
    // Before the transaction: any CREATE TABLE would make MySQL commit it.
    await createStaging(db, run.id, run.settings.results.table, run.settings.mapping);
    await inTransaction(db, async (trx, attempt) => {
      await assertFence(trx, db, fence);
      const known = await rowOf<{ public_key: string }>(
        trx(RUNS).where({ id: run.id }).forUpdate().first('public_key'),
      );
      if (known && attempt.maybeDone && known.public_key === run.publicKey) return;
      if (known) throw new AppError('internal', `the run ${run.id} is in the database already`);
      await trx(RUNS).insert(newRow(run));
      await insertChunks(trx, db, run.id, run.chunks ?? cutChunks(productIds.length, run.plan.chunkSize));
      const columns = ['run_id', 'n', 'product_id', ...(run.urls ? ['path'] : [])] as [string, ...string[]];
      const target = { table: ITEMS, columns, existing: 'error' } as const;
      const refused = await bulkInsert(trx, db, target, itemRows(run.id, productIds, run.urls));
      if (refused[0])
        throw new AppError(
          'database-failed',
          `the database refuses product ${refused[0].index + 1}: ${refused[0].detail}`,
        );
      await insertEvent(trx, run.id, moveEvent(nowMs, null, 'planned', null));
    });
  }

  get(id: string): Promise<RunRecord | null> {
    return selectRun(this.db, id);
  }

  async list(limit: number): Promise<RunRecord[]> {
    return (await this.#rows<RunColumns>((knex) => knex(RUNS).orderBy(NEWEST_FIRST).limit(limit))).map(toRecord);
  }

  async unfinished(): Promise<RunRecord[]> {
    const rows = await this.#rows<RunColumns>((knex) =>
      knex(RUNS).whereIn('phase', OPEN_RUN_PHASES).orWhereNull('report').orderBy(NEWEST_FIRST),
    );
    return rows.map(toRecord);
  }

  async listedRuns(listKey: string, limit: number): Promise<ListedRun[]> {
    const rows = await this.#rows<{ length: SqlNumber; list_accepted: SqlNumber | null }>((knex) =>
      newestOf(knex, listKey)
        .limit(limit)
        .select(knex.raw('coalesce(list_length, planned) as length'), 'list_accepted'),
    );
    return rows.map((row) => ({ products: toNumber(row.length), accepted: toBoolean(row.list_accepted ?? 0) }));
  }

  async measuredPageMs(
    listKey: string,
    render: RunRecord['settings']['site']['render'],
    limit: number,
  ): Promise<number | null> {
    const runs = await this.#rows<{ id: string; settings: string }>((knex) =>
      newestOf(knex, listKey).limit(limit).select('id', 'settings'),
    );
    const run = runs.find(({ settings }) => (JSON.parse(settings) as RunRecord['settings']).site.render === render);
    if (run === undefined) return null;
    const rows = await this.#rows<{ progress: string }>((knex) =>
      knex('crawlfleet_instances').where({ run_id: run.id }).whereNotNull('progress').select('progress'),
    );
    const times = rows.flatMap(({ progress }) => (JSON.parse(progress) as Progress).pageMs ?? []);
    return times.sort((a, b) => a - b)[times.length >> 1] ?? null;
  }

  async measuredRequests(listKey: string, limit: number): Promise<number | null> {
    const runs = await this.#rows<{ id: string; report: string | null }>((knex) =>
      newestOf(knex, listKey).limit(limit).select('id', 'report'),
    );
    for (const { id, report } of runs) {
      const records = report === null ? 0 : recordsWithPages(JSON.parse(report) as RunReport);
      if (records < ENOUGH_RECORDS) continue;
      const rows = await this.#rows<{ progress: string }>((knex) =>
        knex('crawlfleet_instances').where({ run_id: id }).whereNotNull('progress').select('progress'),
      );
      const progress = rows.map((row) => JSON.parse(row.progress) as Progress);
      const answered = progress.reduce((sum, { tried, unavailable }) => sum + tried - unavailable, 0);
      return Math.max(1, answered / records);
    }
    return null;
  }

  async measuredSilence(listKey: string, limit: number): Promise<number | null> {
    const runs = await this.#rows<{ report: string | null }>((knex) =>
      newestOf(knex, listKey).limit(limit).select('report'),
    );
    for (const { report } of runs) {
      const { done = 0, givenUp = {} } = report === null ? {} : ((JSON.parse(report) as RunReport).hosts ?? {});
      const hosts = Object.values(givenUp).reduce((sum, some) => sum + some, done);
      if (hosts >= ENOUGH_HOSTS) return (givenUp.network ?? 0) / hosts;
    }
    return null;
  }

  async lastPace(host: string, bannedSinceMs: number): Promise<AskedPace | null> {
    const pace = await this.#lastPace(host);
    return pace !== null && (await this.#hasBanned(host, bannedSinceMs)) ? { ...pace, bannedLately: true } : pace;
  }

  /** Whether the host banned an address, probes apart: they look for bans. */
  async #hasBanned(host: string, sinceMs: number): Promise<boolean> {
    const bans = await this.#rows<{ run_id: string; evidence: string }>((knex) =>
      knex('crawlfleet_incidents')
        .where({ verdict: 'banned' })
        .whereNot({ rule: ALL_GONE })
        .where('at', '>=', sinceMs)
        .select('run_id', 'evidence'),
    );
    const runs = [...new Set(bans.filter((ban) => bannedBy(ban, host)).map(({ run_id }) => run_id))];
    for (const id of runs) {
      const settings = (await this.get(id))?.settings;
      if (settings && settings.site.maxRequests === undefined && hostsOf(settings.site.productUrl).includes(host))
        return true;
    }
    return false;
  }

  async #lastPace(host: string): Promise<AskedPace | null> {
    for (let known = 0; known < LOOKED_BACK; known += RUNS_AT_ONCE) {
      const rows = await this.#rows<RunColumns>((knex) =>
        knex(RUNS).orderBy(NEWEST_FIRST).offset(known).limit(RUNS_AT_ONCE),
      );
      const runs = rows.map(toRecord).filter(({ settings }) => settings.site.maxRequests === undefined);
      const pace = runs.flatMap(askedOf).find((own) => own.host === host);
      if (pace !== undefined || rows.length < RUNS_AT_ONCE) return pace ?? null;
    }
    return null;
  }

  async setRequest(id: string, request: 'stop' | 'cancel'): Promise<boolean> {
    const changed = await inQuery(this.db, (knex) => whereAccepted(knex, id, request).update({ request }));
    return changed > 0;
  }

  async setOperatorPace(id: string, pace: OperatorPace): Promise<boolean> {
    const changed = await inQuery(this.db, (knex) =>
      knex(RUNS)
        .where({ id })
        .modify((run) => {
          if (pace.addresses !== null) void run.whereIn('phase', OPEN_RUN_PHASES);
        })
        .update({ operator_pace: JSON.stringify(pace) }),
    );
    return changed > 0;
  }

  async addSample(id: string, sample: RunSample): Promise<void> {
    const row = { run_id: id, at: sample.atMs, sample: JSON.stringify(sample) };
    await inQuery(this.db, (knex) => knex('crawlfleet_samples').insert(row).onConflict(['run_id', 'at']).ignore());
  }

  async samples(id: string, afterMs: number): Promise<RunSample[]> {
    const rows = await this.#rows<{ sample: string }>((knex) =>
      knex('crawlfleet_samples').where({ run_id: id }).where('at', '>', afterMs).orderBy('at').select('sample'),
    );
    return rows.map(({ sample }) => JSON.parse(sample) as RunSample);
  }

  hostsInUse(hosts: readonly string[], asker: HostAsker): Promise<HostInUse[]> {
    // On SQLite its write lock waits for a grant under way, on MySQL the lock of the rows does.
    return inDiscardedTransaction(this.db, async (trx) => {
      const rows = await lockHostsShared(trx, hosts);
      if (rows.length === 0) return [];
      const found = await claimedHosts(trx, rows, asker, await heldLeases(trx, this.db));
      return [...found.values()];
    });
  }

  setHost(host: string, wish: Partial<Pick<HostWish, 'denied' | 'paceMs'>>): Promise<void> {
    return setHost(this.db, host, wish);
  }

  hostRow(host: string): Promise<HostRecord | null> {
    return readHost(this.db, host);
  }

  hostNames(domain: string): Promise<{ host: string; runId: string | null }[]> {
    return readNames(this.db, domain);
  }

  #rows<T>(select: (knex: Knex) => PromiseLike<unknown>): Promise<T[]> {
    return inQuery(this.db, (knex) => rowsOf<T>(select(knex)));
  }
}

/** What the hosts of a run asked of it, and its operator for the next plan. */
function askedOf(run: RunRecord): AskedPace[] {
  const pace = operatorPaceOf(run);
  const kept = pace?.runId === run.id && pace.isForNextPlan ? { operatorPace: pace } : {};
  return pacesOf(run).map((own) => ({ ...own, ...kept }));
}

/** By the page in its evidence; one without a page may be of any host of the run. */
function bannedBy({ evidence }: { evidence: string }, host: string): boolean {
  const { url } = JSON.parse(evidence) as Evidence;
  return !URL.canParse(url) || hostsOf(url).includes(host);
}

/** The published runs over a list. */
/** Fewer say nothing about how many requests a record takes. */
const ENOUGH_RECORDS = 100;

/** Fewer say nothing about the share of them that gives no answer. */
const ENOUGH_HOSTS = 100;

/** Reasons of records whose pages were read: others have got no answer, or no request. */
const READ: readonly FailureReason[] = ['parse', 'content-type', 'too-large', 'assert', 'load'];

const recordsWithPages = ({ products: { stored, gone, reasons } }: Pick<RunReport, 'products'>): number =>
  stored + gone + READ.reduce((sum, reason) => sum + (reasons[reason] ?? 0), 0);

const newestOf = (knex: Knex, listKey: string) =>
  knex(RUNS).where({ list_key: listKey }).whereIn('phase', PUBLISHED).where(notCancelled).orderBy(NEWEST_FIRST);

/** RunRow on knex: one run's row and events. */
export class KnexRunRow extends BoundRun implements RunRow {
  get(): Promise<RunRecord | null> {
    return selectRun(this.db, this.id);
  }

  async move(
    from: RunPhase,
    to: RunPhase,
    detail: { reason?: string; exitCode?: ExitCode; request?: StopRequest } = {},
  ): Promise<boolean> {
    if (!canMoveRun(from, to)) throw new AppError('internal', `a run cannot move from ${from} to ${to}`);
    const { id } = this;
    const nowMs = this.now();
    const event = moveEvent(nowMs, from, to, detail.reason ?? null);
    return this.write(async (trx, attempt) => {
      const changed = await trx(RUNS)
        .where({ id, phase: from })
        .modify((run) => {
          // A cancel request arrived while the rows were being checked: they are discarded, not held.
          if (to === 'held') void run.where(notCancelled);
        })
        .update({
          phase: to,
          ...(detail.request === undefined ? {} : { request: detail.request }),
          ...(detail.reason === undefined ? {} : { reason: detail.reason }),
          ...(detail.exitCode === undefined ? {} : { exit_code: detail.exitCode }),
          // A held run ended when it was held; the days until a person decides are not part of it.
          ...(isRunEnd(to) && from !== 'held' ? { finished_at: nowMs } : {}),
        });
      if (changed === 0) return attempt.maybeDone && isLastEvent(trx, id, event);
      await insertEvent(trx, id, event);
      return true;
    });
  }

  async setEnd(exitCode: ExitCode, reason: string): Promise<void> {
    await this.#update({ exit_code: exitCode, reason });
  }

  async setBalancer(region: string, balancer: Balancer | null): Promise<void> {
    const { id } = this;
    await this.write(async (trx) => {
      const row = await rowOf<RunColumns>(trx(RUNS).where({ id }).forUpdate().first());
      if (!row) return;
      const { [region]: _, ...others } = toRecord(row).balancers;
      const balancers = balancer === null ? others : { ...others, [region]: balancer };
      await trx(RUNS)
        .where({ id })
        .update({ balancer: JSON.stringify(balancers) });
    });
  }

  async setReport(report: RunReport): Promise<void> {
    await this.#update({ report: JSON.stringify(report) });
  }

  async setPaces(paces: readonly HostPace[]): Promise<void> {
    await this.#update({ paces: JSON.stringify(paces) });
  }

  async setRequest(request: StopRequest): Promise<boolean> {
    return (await this.#update({ request }, (knex, id) => whereAccepted(knex, id, request))) > 0;
  }

  async addEvent(event: RunEvent): Promise<void> {
    await inTransaction(this.db, async (trx, attempt) => {
      if (attempt.maybeDone && (await isLastEvent(trx, this.id, event))) return;
      await insertEvent(trx, this.id, event);
    });
  }

  events(limit: number, kind?: string): Promise<RunEvent[]> {
    return this.query((knex) => selectEvents(knex, this.id, limit, kind));
  }

  #update(
    values: object,
    rows = (knex: Knex, id: string): Knex.QueryBuilder => knex(RUNS).where({ id }),
  ): Promise<number> {
    return this.query((knex) => this.update(knex, rows(knex, this.id), values));
  }
}

function selectRun(db: Database, id: string): Promise<RunRecord | null> {
  return inQuery(db, async (knex) => {
    const row = await rowOf<RunColumns>(knex(RUNS).where({ id }).first());
    return row ? toRecord(row) : null;
  });
}

/** The run's row, if it takes this request. */
function whereAccepted(knex: Knex, id: string, request: StopRequest): Knex.QueryBuilder {
  const run = knex(RUNS).where({ id }).whereIn('phase', OPEN_RUN_PHASES);
  return request === 'cancel' ? run : run.where((any) => void any.whereNull('request').orWhere({ request }));
}

/** The event of a run's move. */
export function moveEvent(atMs: number, from: RunPhase | null, to: RunPhase, detail: string | null): RunEvent {
  return { atMs, kind: 'run', slot: null, epoch: null, from, to, detail };
}

function* itemRows(runId: string, productIds: IdList, urls: RunToStore['urls']): Generator<SqlValue[]> {
  let n = 0;
  if (urls === undefined) for (const id of productIds) yield [runId, ++n, id];
  else for (const id of productIds) yield [runId, ++n, id, urls.get(id) ?? NO_URL];
}

function newRow(run: NewRun): Record<string, SqlValue> {
  return {
    ...RUN.write(run),
    phase: 'planned',
    results_table: run.settings.results.table,
    list_key: run.settings.list?.key ?? null,
    list_accepted: run.settings.list?.accepted === true ? 1 : 0,
    list_length: run.settings.list?.length ?? null,
    discovery: run.discovery === undefined ? null : JSON.stringify(run.discovery),
  };
}

function toRecord(row: RunColumns): RunRecord {
  const run = RUN.read(row);
  return {
    ...run,
    balancers: balancersOf(row.balancer, run),
    ...(row.fill === null ? {} : { fill: JSON.parse(row.fill) as FillRates }),
    ...(row.value_profile === null ? {} : { values: JSON.parse(row.value_profile) as ValueProfile }),
    ...(row.numbers === null ? {} : { numbers: JSON.parse(row.numbers) as NumberReport[] }),
    ...(row.paces === null ? {} : { paces: JSON.parse(row.paces) as HostPace[] }),
    ...(row.operator_pace === null ? {} : { operatorPace: JSON.parse(row.operator_pace) as OperatorPace }),
    ...(row.discovery === null ? {} : { discovery: JSON.parse(row.discovery) as DiscoveryCounts }),
  };
}

/** The balancers by region; a run of an earlier version has one, without a region. */
function balancersOf(text: string | null, { settings }: Pick<RunRecord, 'settings'>): RunRecord['balancers'] {
  if (text === null) return {};
  const stored = JSON.parse(text) as RunRecord['balancers'] | Balancer;
  return 'loadBalancerArn' in stored ? { [settings.aws.region]: stored as Balancer } : stored;
}
