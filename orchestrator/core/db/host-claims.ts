/**
 * Takes the hosts of chunks that are about to be granted, over all runs of the database: no two runs ask one host at a
 * time. It happens at the grant, because that alone says who asks, and no request is sent without one.
 */
import type { Knex } from 'knex';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import { type ChunkRow, hostOfItem, ITEMS, openItems, type OpenItem } from './chunk-rows.ts';
import type { Database } from './connect.ts';
import { type Claim, type HostRow, lockHosts, writeClaims } from './host-rows.ts';
import { claimedHosts, type SiteHosts } from './host-use.ts';
import { heldLeases } from './locks.ts';
import { inPieces } from './rows.ts';
import { type HostPart, postpone, type Postponed } from './split-chunks.ts';

/** After this time a chunk is offered again of which another run has a host. */
const RETRY_MS = 60_000;

/** Ranges per statement. */
const RANGES = 50;

interface Claimant {
  db: Database;
  key: { run_id: string } & EpochId;
  fence: number;
  sites: SiteHosts;
  nowMs: number;
}

/** Consecutive open products of one host; null: they have no URL to request. */
interface HostRange extends Pick<HostPart, 'first' | 'open'> {
  host: string | null;
  last: number;
}

/**
 * Claims the hosts of those of these locked, waiting chunks of which all are free, and returns these chunks. The others
 * are to be offered later, or in pieces. Products of denied hosts fail.
 */
export async function claimHosts(
  trx: Knex.Transaction,
  claimant: Claimant,
  rows: readonly ChunkRow[],
): Promise<ChunkRow[]> {
  const { key } = claimant;
  const chunks = (await openItems(trx, key.run_id, rows)).map(({ chunk, open }) => ({ chunk, hosts: rangesOf(open) }));
  const names = new Set(chunks.flatMap(({ hosts }) => hosts.flatMap(({ host }) => host ?? [])));
  if (names.size === 0) return [...rows];
  const known = await lockHosts(trx, [...names].sort());
  const dueAt = await dueAtOf(trx, claimant, [...known.values()]);
  const isDenied = ({ host }: HostRange): boolean => host !== null && Boolean(known.get(host)?.denied);
  await failDenied(
    trx,
    claimant,
    chunks.flatMap(({ hosts }) => hosts.filter(isDenied)),
  );
  const granted: ChunkRow[] = [];
  const postponed: Postponed[] = [];
  const claims = new Map<string, Claim>();
  for (const { chunk, hosts } of chunks) {
    const left = hosts.filter((range) => !isDenied(range));
    const parts = left.map((range) => ({ ...range, dueAtMs: dueAt.get(range.host ?? '') ?? null }));
    const isSmaller = left.length < hosts.length;
    if (isSmaller || parts.some(({ dueAtMs }) => dueAtMs !== null)) {
      postponed.push({ chunk, parts, isSmaller });
      continue;
    }
    granted.push(chunk);
    for (const { host, first, last } of left)
      if (host !== null) claims.set(host, claimOf(claims.get(host) ?? known.get(host), { ...key, host, first, last }));
  }
  await postpone(trx, key.run_id, postponed);
  await writeClaims(
    trx,
    [...claims.values()].sort((a, b) => (a.host < b.host ? -1 : 1)),
  );
  return granted;
}

function rangesOf(open: readonly OpenItem[]): HostRange[] {
  const ranges: HostRange[] = [];
  for (const item of open) {
    const host = hostOfItem(item);
    const before = ranges.at(-1);
    if (before !== undefined && before.host === host) {
      before.last = item.n;
      before.open++;
    } else ranges.push({ host, first: item.n, last: item.n, open: 1 });
  }
  return ranges;
}

/** When each of these hosts that is not free is to be tried again. */
async function dueAtOf(
  trx: Knex.Transaction,
  { db, key, fence, sites, nowMs }: Claimant,
  rows: readonly HostRow[],
): Promise<Map<string, number>> {
  const leases = await heldLeases(trx, db);
  const asker = { runId: key.run_id, nowMs, intervalMs: null };
  const taken = await sites.read(trx, asker, leases, fence);
  const dueAt = new Map<string, number>();
  for (const use of (await claimedHosts(trx, rows, asker, leases)).values())
    dueAt.set(use.host, use.isResting ? use.untilMs : nowMs + RETRY_MS);
  for (const { host } of rows) if (taken.has(host)) dueAt.set(host, Math.max(dueAt.get(host) ?? 0, nowMs + RETRY_MS));
  return dueAt;
}

/** Slices of a host, granted one after the other to the same instance, are one claim. */
function claimOf(
  before: Pick<HostRow, 'run_id' | 'slot' | 'epoch' | 'first_n' | 'last_n' | 'refusals'> | undefined,
  { run_id, slot, epoch, host, first, last }: Claimant['key'] & { host: string; first: number; last: number },
): Claim {
  const isSame = before?.run_id === run_id && before.slot === slot && before.epoch === epoch;
  return {
    host,
    run_id,
    slot,
    epoch,
    first_n: Math.min(first, (isSame ? before.first_n : null) ?? first),
    last_n: Math.max(last, (isSame ? before.last_n : null) ?? last),
    // What it has refused another run says nothing about tonight.
    refusals: before?.run_id === run_id ? before.refusals : null,
  };
}

/** Settles products as the main server does, without an instance and a part. */
async function failDenied(
  trx: Knex.Transaction,
  { key, nowMs }: Claimant,
  denied: readonly HostRange[],
): Promise<void> {
  for (const [host, ranges] of Map.groupBy(denied, (range) => range.host)) {
    const detail = `${host} is denied (orchestrator hosts deny)`;
    for (const piece of inPieces(ranges, RANGES))
      await trx(ITEMS)
        .where({ run_id: key.run_id })
        .whereNull('outcome')
        .where((any) => {
          for (const { first, last } of piece) void any.orWhereBetween('n', [first, last]);
        })
        .update({ outcome: 'failed', reason: 'redirect', detail, settled_at: nowMs });
  }
}
