/**
 * Which hosts other runs of the database, or other instances of this one, may be asking. A claim is never taken back by
 * a write of its owner: who wants the host next looks whether that owner is still there and has anything left to ask.
 * So nothing that dies can keep a host, or free it too early.
 */
import type { Knex } from 'knex';
import { templatesOf } from '../../../shared/domain/domains.ts';
import { type EpochId, epochKey } from '../../../shared/domain/epoch-id.ts';
import { hostGroupOf, type HostKey } from '../../../shared/domain/host-key.ts';
import { hostLeaseMs } from '../../../shared/domain/limits.ts';
import { isRunEnd, OPEN_RUN_PHASES, type RunPhase } from '../../../shared/domain/states.ts';
import { intervalOf } from '../model/operator-pace.ts';
import { limitsOf, powerOffAtMs } from '../model/run-deadlines.ts';
import type { RunSettings } from '../model/run-settings.ts';
import type { HostAsker, HostInUse, RunRecord } from '../model/stores.ts';
import { type ChunkRow, CHUNKS, ITEMS } from './chunk-rows.ts';
import { gapOf, withRests } from './host-rests.ts';
import { type HostRow, namesIn } from './host-rows.ts';
import type { HeldLease } from './locks.ts';
import { inPieces, rowsOf, type SqlNumber, toNumber } from './rows.ts';

/** Conditions per statement. */
const LIST = 50;

/** A row of crawlfleet_runs, as far as it says until when the run asks hosts. */
interface RunState {
  id: string;
  isOpen: boolean;
  finishedAtMs: number;
  /** When the last request of any of its instances is over, even without a main server. */
  endMs: number;
  intervalMs: number;
  hostKey: HostKey | undefined;
  leaseMs: number;
  /** How often its instances settle products. */
  partMs: number;
}

/** A host that an instance had, with its products in the chunks granted to it. */
interface Owned extends EpochId {
  /** That instance asks. */
  isOwn: boolean;
  row: HostRow;
  run: RunState;
  first: number;
  last: number;
}

/**
 * Those of these hosts that runs of many hosts have, or had so lately that they have to rest, by host. The rows are
 * locked, so that no grant changes them. A run that asks for a domain competes for all names in it, and a run that asks
 * for a name competes with the runs that have its domain.
 */
export async function claimedHosts(
  trx: Knex.Transaction,
  locked: readonly HostRow[],
  asker: HostAsker,
  leases: readonly HeldLease[],
): Promise<Map<string, HostInUse>> {
  const rows = await withRests(trx, [...locked, ...(asker.hostKey === 'host' ? [] : await namesIn(trx, locked))]);
  const living = new Set(leases.filter(({ isLiving }) => isLiving).map(({ runId }) => runId));
  const { owned, ownIntervalMs } = await ownersOf(trx, rows, asker);
  const isAtWork = ({ id, endMs, isOpen }: RunState): boolean =>
    isOpen && (id === asker.runId || endMs >= asker.nowMs || living.has(id));
  const ranges = await settledRanges(
    trx,
    owned.filter(({ run }) => isAtWork(run)),
  );
  const owners = new Map(owned.map((each) => [each.row.host, each]));
  const found = new Map<string, HostInUse>();
  for (const row of rows) {
    const { host } = row;
    const owner = owners.get(host);
    const gapMs = gapOf(row, Math.max(ownIntervalMs, owner?.run.intervalMs ?? 0));
    const runId = owner?.run.id ?? row.run_id;
    const settled = ranges.get(host);
    if (owner !== undefined && settled?.isOpen === true) {
      const { endMs, leaseMs } = owner.run;
      const { partMs } = owner.run;
      const untilMs = endMs + gapMs;
      const isOwn = owner.isOwn ? { isOwn: true as const } : {};
      found.set(host, { host, runId, untilMs, isResting: false, restMs: leaseMs + gapMs, partMs, ...isOwn });
      continue;
    }
    // Who asked it last keeps the gap itself.
    const lastMs =
      owner?.isOwn === true ? null : (settled?.lastMs ?? (owner?.run.isOpen === false ? owner.run.finishedAtMs : null));
    const untilMs = Math.max(toNumber(row.not_before), lastMs === null ? 0 : lastMs + gapMs);
    const restMs = (owner?.run.leaseMs ?? 0) + gapMs;
    if (untilMs > asker.nowMs) found.set(host, { host, runId, untilMs, isResting: true, restMs });
  }
  const rivals = rows.flatMap(({ host, domain }) => {
    if (domain === null || domain === host) return [];
    if (asker.hostKey !== 'host') return [{ asked: domain, rival: host }];
    // Else the row is about the bare name alone.
    return owners.get(domain)?.run.hostKey === 'host' ? [] : [{ asked: host, rival: domain }];
  });
  for (const { asked, rival } of rivals) {
    const [own, other] = [found.get(asked), found.get(rival)];
    if (other !== undefined) found.set(asked, own === undefined ? other : later(own, other));
  }
  return new Map(locked.flatMap(({ host }) => (found.has(host) ? [[host, found.get(host)!]] : [])));
}

/** What is to be waited for of two. */
function later(own: HostInUse, other: HostInUse): HostInUse {
  const isOther = own.isResting === other.isResting ? other.untilMs >= own.untilMs : own.isResting;
  const { isOwn = false, ...use } = isOther ? other : own;
  const restMs = Math.max(own.restMs, other.restMs);
  return { ...use, restMs, ...(isOwn && own.isOwn && other.isOwn ? { isOwn } : {}) };
}

/** Who had each of the hosts last. A run whose row is gone asks nothing. */
async function ownersOf(
  trx: Knex.Transaction,
  rows: readonly HostRow[],
  { runId: own, at, intervalMs }: HostAsker,
): Promise<{ owned: Owned[]; ownIntervalMs: number }> {
  const claims = rows.flatMap((row) => {
    const { run_id, slot, epoch, first_n, last_n } = row;
    if (run_id === null || slot === null || epoch === null || (run_id === own && at === undefined)) return [];
    const isOwn = run_id === own && at !== undefined && epochKey(at) === epochKey({ slot, epoch });
    return [{ row, isOwn, runId: run_id, slot, epoch, first: toNumber(first_n), last: toNumber(last_n) }];
  });
  if (claims.length === 0) return { owned: [], ownIntervalMs: intervalMs ?? 0 };
  const ids = new Set(claims.map(({ runId }) => runId));
  if (own !== null && intervalMs === null) ids.add(own);
  const runs = await readRuns(trx, [...ids]);
  const owned = claims.flatMap(({ runId, ...host }) => {
    const run = runs.get(runId);
    return run === undefined ? [] : [{ ...host, run }];
  });
  return { owned, ownIntervalMs: intervalMs ?? runs.get(own ?? '')?.intervalMs ?? 0 };
}

async function readRuns(knex: Knex, ids: readonly string[]): Promise<Map<string, RunState>> {
  type Row = { id: string; phase: RunPhase; settings: string; plan: string; operator_pace: string | null } & Record<
    'started_at' | 'deadline_at' | 'finished_at',
    SqlNumber | null
  >;
  const runs = new Map<string, RunState>();
  for (const piece of inPieces(ids, LIST)) {
    const columns = ['id', 'phase', 'settings', 'plan', 'operator_pace', 'started_at', 'deadline_at', 'finished_at'];
    for (const row of await rowsOf<Row>(knex('crawlfleet_runs').whereIn('id', piece).select(columns))) {
      const run = {
        settings: JSON.parse(row.settings) as RunSettings,
        plan: JSON.parse(row.plan) as RunRecord['plan'],
        startedAtMs: toNumber(row.started_at),
        deadlineAtMs: toNumber(row.deadline_at),
        ...(row.operator_pace === null
          ? {}
          : { operatorPace: JSON.parse(row.operator_pace) as NonNullable<RunRecord['operatorPace']> }),
      };
      const limits = limitsOf(run);
      const leaseMs = hostLeaseMs(limits);
      runs.set(row.id, {
        id: row.id,
        isOpen: !isRunEnd(row.phase),
        finishedAtMs: toNumber(row.finished_at),
        endMs: powerOffAtMs(run) + leaseMs,
        intervalMs: intervalOf(run),
        hostKey: run.settings.site.hostKey,
        leaseMs,
        partMs: limits.partMs,
      });
    }
  }
  return runs;
}

/** By host: whether its owner has anything left to ask there, and when its last product was settled. */
async function settledRanges(
  knex: Knex,
  hosts: readonly Owned[],
): Promise<Map<string, { isOpen: boolean; lastMs: number | null }>> {
  const granted = await grantedChunks(knex, hosts);
  const ranges = hosts.flatMap((own): Range[] => {
    const { first, last, run } = own;
    const host = own.row.host;
    const chunks = granted.get(ownerKey(run.id, own)) ?? [];
    const whole = { host, runId: run.id, first, last, isGranted: false };
    return [
      whole,
      ...chunks
        .map((chunk) => ({
          ...whole,
          first: Math.max(first, chunk.first_n),
          last: Math.min(last, chunk.last_n),
          isGranted: true,
        }))
        .filter((part) => part.first <= part.last),
    ];
  });
  const found = new Map<string, { isOpen: boolean; lastMs: number | null }>();
  for (const { host, isGranted, open, last_at } of await countOpen(knex, ranges)) {
    const known = found.get(host) ?? { isOpen: false, lastMs: null };
    if (isGranted) known.isOpen ||= open > 0;
    else known.lastMs = last_at;
    found.set(host, known);
  }
  return found;
}

const ownerKey = (runId: string, at: EpochId): string => `${runId} ${epochKey(at)}`;

type Granted = Pick<ChunkRow, 'first_n' | 'last_n'> & { run_id: string } & EpochId;

async function grantedChunks(knex: Knex, hosts: readonly Owned[]): Promise<Map<string, Granted[]>> {
  const owners = new Map(
    hosts.map(({ run, slot, epoch }) => [ownerKey(run.id, { slot, epoch }), { run_id: run.id, slot, epoch }]),
  );
  const chunks: Granted[] = [];
  for (const piece of inPieces([...owners.values()], LIST)) {
    const granted = knex(CHUNKS)
      .where({ state: 'granted' })
      .where((any) => {
        for (const owner of piece) void any.orWhere(owner);
      });
    chunks.push(...(await rowsOf<Granted>(granted.select('run_id', 'slot', 'epoch', 'first_n', 'last_n'))));
  }
  return Map.groupBy(chunks, (chunk) => ownerKey(chunk.run_id, chunk));
}

interface Range {
  host: string;
  runId: string;
  first: number;
  last: number;
  /** In a chunk that its owner still has. */
  isGranted: boolean;
}

/** How many products of each range have no outcome, and when the last one got its own. */
async function countOpen(
  knex: Knex,
  ranges: readonly Range[],
): Promise<(Range & { open: number; last_at: number | null })[]> {
  const counted: (Range & { open: number; last_at: number | null })[] = [];
  for (const piece of inPieces(ranges, LIST)) {
    const each = piece.map(({ runId, first, last }, i) =>
      knex(ITEMS)
        .where({ run_id: runId })
        .whereBetween('n', [first, last])
        .select(knex.raw('? as place', [i]))
        .count({ items: '*', settled: 'outcome' })
        .max({ last_at: 'settled_at' }),
    );
    const [first, ...others] = each;
    if (first === undefined) continue;
    type Row = { place: SqlNumber; items: SqlNumber; settled: SqlNumber; last_at: SqlNumber | null };
    for (const row of await rowsOf<Row>(first.unionAll(others))) {
      const range = piece[toNumber(row.place)];
      if (range === undefined) continue;
      const lastMs = row.last_at === null ? null : toNumber(row.last_at);
      counted.push({ ...range, open: toNumber(row.items) - toNumber(row.settled), last_at: lastMs });
    }
  }
  return counted;
}

/** What is asked by runs that name their hosts: one site, or the further hosts of its links. */
interface Site {
  hosts: readonly string[];
  graceMs: number;
}

/** The hosts of sites that other main servers crawl, by what one pace holds for. */
export class SiteHosts {
  /** Of runs that were open once: a run's settings do not change. */
  readonly #known = new Map<string, Site>();

  /**
   * Those of living leases, and of open runs whose instances may be at work without a main server. To be read after the
   * asker has locked its rows of hosts: who takes a lease that is not among these looks at those rows afterwards.
   */
  async read(
    trx: Knex.Transaction,
    { runId: own, nowMs }: Pick<HostAsker, 'runId' | 'nowMs'>,
    leases: readonly HeldLease[],
    fence: number,
  ): Promise<ReadonlySet<string>> {
    const living = leases.filter(({ isLiving, runId, ...lease }) => {
      return isLiving && lease.fence !== fence && (runId === null || runId !== own);
    });
    const hosts = new Set(hostGroupsOf(living.map(({ name }) => name)));
    const open = trx('crawlfleet_runs').whereIn('phase', OPEN_RUN_PHASES).select('id', 'deadline_at');
    const runs = (await rowsOf<{ id: string; deadline_at: SqlNumber }>(open)).filter(({ id }) => id !== own);
    const unknown = runs.map(({ id }) => id).filter((id) => !this.#known.has(id));
    for (const piece of inPieces(unknown, LIST)) {
      const settings = trx('crawlfleet_runs').whereIn('id', piece).select('id', 'settings');
      for (const row of await rowsOf<{ id: string; settings: string }>(settings))
        this.#known.set(row.id, siteOf(JSON.parse(row.settings) as RunSettings));
    }
    for (const { id, deadline_at } of runs) {
      const site = this.#known.get(id);
      if (site === undefined || toNumber(deadline_at) + site.graceMs < nowMs) continue;
      for (const host of site.hosts) hosts.add(host);
    }
    return hosts;
  }
}

function siteOf({ site, run }: RunSettings): Site {
  const urls = [...templatesOf(site.productUrl), ...(site.follow?.hosts ?? [])];
  return { hosts: [...new Set(urls.map((url) => hostGroupOf(new URL(url))))], graceMs: run.graceMs };
}

/** The hosts in the names of locks, by what one pace holds for. */
export function hostGroupsOf(lockNames: readonly string[]): string[] {
  const hosts = lockNames.flatMap((name) => /^host:(.+)$/.exec(name)?.[1] ?? []);
  const urls = hosts.flatMap((host) => URL.parse(`http://${host}`) ?? []);
  return [...new Set(urls.map((url) => hostGroupOf(url)))];
}
