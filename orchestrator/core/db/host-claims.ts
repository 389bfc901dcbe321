/**
 * Takes the hosts of chunks that are about to be granted, over all runs of the database: no two instances ask one host
 * at a time. It happens at the grant, because that alone says who asks, and no request is sent without one.
 */
import type { Knex } from 'knex';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { HostKey } from '../../../shared/domain/host-key.ts';
import type { FailureReason } from '../../../shared/domain/outcome.ts';
import { drainAtMs } from '../model/run-deadlines.ts';
import type { RunSettings } from '../model/run-settings.ts';
import { type ChunkRow, hostsOfItem, isSlice, ITEMS, openItems, type OpenItem } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { gapOf } from './host-rests.ts';
import { type Claim, type HostRow, lockHosts, writeClaims } from './host-rows.ts';
import { claimedHosts, type SiteHosts } from './host-use.ts';
import { onRanges } from './load-part.ts';
import { heldLeases } from './locks.ts';
import { rowOf, type SqlNumber, toNumber } from './rows.ts';
import { type HostPart, postpone, type Postponed } from './split-chunks.ts';

/** After this time a chunk is offered again of which another owner has a host. */
const RETRY_MS = 60_000;

interface Claimant {
  db: Database;
  key: { run_id: string } & EpochId;
  fence: number;
  sites: SiteHosts;
  nowMs: number;
  /** Of the run. */
  hostKey: HostKey | undefined;
}

/** Consecutive open products of the same hosts; none: they have no URL to request. */
interface HostRange extends Pick<HostPart, 'first' | 'open'> {
  hosts: readonly string[];
  last: number;
}

/**
 * Claims the hosts of those of these locked, waiting chunks of which all are free, and returns these chunks. The others
 * are to be offered later, or in pieces. Products of hosts that may not be asked in this run fail.
 */
export async function claimHosts(
  trx: Knex.Transaction,
  claimant: Claimant,
  rows: readonly ChunkRow[],
): Promise<ChunkRow[]> {
  const { key, hostKey } = claimant;
  const found = await openItems(trx, key.run_id, rows);
  const chunks = found.map(({ chunk, open }) => ({ chunk, ranges: rangesOf(open, hostKey) }));
  const names = new Set(chunks.flatMap(({ ranges }) => ranges.flatMap(({ hosts }) => hosts)));
  if (names.size === 0) return [...rows];
  const known = await lockHosts(trx, names, hostKey);
  const uses = await usesOf(trx, claimant, [...known.values()]);
  const closed = await closedHosts(trx, claimant, [...known.values()]);
  const closedOf = ({ hosts }: HostRange): Closed | undefined => hosts.flatMap((host) => closed.get(host) ?? [])[0];
  await failAt(
    trx,
    claimant,
    Map.groupBy(
      chunks.flatMap(({ ranges }) => ranges),
      closedOf,
    ),
  );
  const granted: ChunkRow[] = [];
  const postponed: Postponed[] = [];
  const claims = new Map<string, Claim>();
  for (const { chunk, ranges } of chunks) {
    const left = ranges.filter((range) => closedOf(range) === undefined);
    const dueAtMsOf = ({ hosts }: HostRange): number | null => {
      // The next slice of a host is kept for the instance that has it.
      const waits = hosts.flatMap((host) => uses.get(host) ?? []).filter(({ isOwn }) => !isOwn || !isSlice(chunk));
      return waits.length === 0 ? null : Math.max(...waits.map(({ dueAtMs }) => dueAtMs));
    };
    const parts = left.map((range) => ({ ...range, dueAtMs: dueAtMsOf(range) }));
    const isSmaller = left.length < ranges.length;
    if (isSmaller || parts.some(({ dueAtMs }) => dueAtMs !== null)) {
      postponed.push({ chunk, parts, isSmaller });
      continue;
    }
    granted.push(chunk);
    for (const { hosts, first, last } of left)
      for (const host of hosts)
        claims.set(
          host,
          claimOf(claims.get(host) ?? { ...known.get(host), isOpen: uses.get(host)?.isOwn === true }, {
            ...key,
            host,
            first,
            last,
          }),
        );
  }
  await postpone(trx, key.run_id, postponed);
  await writeClaims(
    trx,
    [...claims.values()].sort((a, b) => (a.host < b.host ? -1 : 1)),
  );
  return granted;
}

function rangesOf(open: readonly OpenItem[], hostKey: HostKey | undefined): HostRange[] {
  const ranges: HostRange[] = [];
  for (const item of open) {
    const hosts = hostsOfItem(item, hostKey);
    const before = ranges.at(-1);
    if (before !== undefined && before.hosts.join(' ') === hosts.join(' ')) {
      before.last = item.n;
      before.open++;
    } else ranges.push({ hosts, first: item.n, last: item.n, open: 1 });
  }
  return ranges;
}

/** Those of these hosts that are not free, and when each is to be tried again. */
async function usesOf(
  trx: Knex.Transaction,
  { db, key, fence, sites, nowMs, hostKey }: Claimant,
  rows: readonly HostRow[],
): Promise<Map<string, { dueAtMs: number; isOwn: boolean }>> {
  const leases = await heldLeases(trx, db);
  const asker = { runId: key.run_id, at: key, nowMs, intervalMs: null, hostKey };
  const taken = await sites.read(trx, asker, leases, fence);
  const uses = new Map<string, { dueAtMs: number; isOwn: boolean }>();
  const claimed = await claimedHosts(trx, rows, asker, leases);
  for (const [host, { runId, isResting, untilMs, partMs = Infinity, isOwn = false }] of claimed) {
    // The parts of its own instances may free it at any time.
    const retryMs = runId === key.run_id ? Math.min(RETRY_MS, partMs / 2) : RETRY_MS;
    uses.set(host, { dueAtMs: isResting ? untilMs : nowMs + retryMs, isOwn });
  }
  for (const { host, domain } of rows)
    if (taken.has(domain ?? host))
      uses.set(host, { dueAtMs: Math.max(uses.get(host)?.dueAtMs ?? 0, nowMs + RETRY_MS), isOwn: false });
  return uses;
}

/** What an instance has of a host: with what it was granted before, as far as that is open. */
function claimOf(
  before: Partial<HostRow> & { isOpen?: boolean },
  { run_id, slot, epoch, host, first, last }: Claimant['key'] & { host: string; first: number; last: number },
): Claim {
  const isMore = before.isOpen !== false;
  return {
    host,
    run_id,
    slot,
    epoch,
    first_n: Math.min(first, (isMore ? before.first_n : null) ?? first),
    last_n: Math.max(last, (isMore ? before.last_n : null) ?? last),
    // What it has refused another run says nothing about tonight.
    refusals: before.run_id === run_id ? (before.refusals ?? null) : null,
  };
}

/** Why the products of a host fail without a request. */
interface Closed {
  reason: FailureReason;
  detail: string;
}

/** Those of these hosts that may not be asked in this run any more: they are denied, or want a rest beyond its end. */
async function closedHosts(
  trx: Knex.Transaction,
  { key, nowMs }: Claimant,
  rows: readonly HostRow[],
): Promise<Map<string, Closed>> {
  const closed = new Map<string, Closed>();
  const isResting = rows.some(({ not_before }) => toNumber(not_before) > nowMs);
  const { endMs, intervalMs } = isResting ? await readNight(trx, key.run_id) : ENDLESS;
  for (const row of rows) {
    const { host, denied } = row;
    const untilMs = toNumber(row.not_before);
    if (denied) closed.set(host, { reason: 'redirect', detail: `${host} is denied (orchestrator hosts deny)` });
    // A gap is the rest between any two owners.
    else if (untilMs > nowMs + gapOf(row, intervalMs) && untilMs >= endMs) {
      const detail = `${host} wants no request before ${new Date(untilMs).toISOString()}, which is after the end of the run`;
      closed.set(host, { reason: 'banned', detail });
    }
  }
  return closed;
}

const ENDLESS = { endMs: Infinity, intervalMs: 0 };

/** When the run stops crawling, and its interval. */
async function readNight(trx: Knex.Transaction, runId: string): Promise<typeof ENDLESS> {
  type Row = Record<'started_at' | 'deadline_at', SqlNumber> & { settings: string };
  const own = trx('crawlfleet_runs').where({ id: runId });
  const row = await rowOf<Row>(own.first('started_at', 'deadline_at', 'settings'));
  if (row === undefined) return ENDLESS;
  const { site } = JSON.parse(row.settings) as RunSettings;
  const endMs = drainAtMs({ startedAtMs: toNumber(row.started_at), deadlineAtMs: toNumber(row.deadline_at) });
  return { endMs, intervalMs: site.intervalMs };
}

/** Settles products of closed hosts as the main server does, without an instance and a part. */
async function failAt(
  trx: Knex.Transaction,
  { db, key, nowMs }: Claimant,
  closed: ReadonlyMap<Closed | undefined, readonly HostRange[]>,
): Promise<void> {
  for (const [why, ranges] of closed) {
    if (why === undefined) continue;
    for (const narrow of onRanges(
      db.engine,
      ranges.map(({ first, last }) => [first, last]),
    ))
      await trx(ITEMS)
        .where({ run_id: key.run_id })
        .whereNull('outcome')
        .modify(narrow)
        .update({ outcome: 'failed', ...why, settled_at: nowMs });
  }
}
