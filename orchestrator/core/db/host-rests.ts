/**
 * Until when the hosts of an instance rest that has returned its chunks: one moment for all of them, in its own row. It
 * counts for a host as long as the instance was the last that was granted it.
 */
import type { Knex } from 'knex';
import { type EpochId, epochKey } from '../../../shared/domain/epoch-id.ts';
import { hostGapMs } from '../../../shared/domain/host-policy.ts';
import { NOT_NEXT_MS } from '../../../shared/domain/sharing.ts';
import { CHUNKS, isSlice } from './chunk-rows.ts';
import { grantedChunks } from './grants.ts';
import { inPieces, rowOf, rowsOf, type SqlNumber, toNumber } from './rows.ts';

const INSTANCES = 'crawlfleet_instances';
const HOSTS = 'crawlfleet_hosts';
/** Conditions per statement. */
const LIST = 50;
/** Indexes in one IN list. */
const INDEXES = 1_000;

type Key = { run_id: string } & EpochId;

type Rest = Key & { hosts_free_at: SqlNumber | null };

/** No request before this time to the hosts of which the instance had the last grant; an earlier rest is not ended. */
export async function beginRest(trx: Knex.Transaction, key: Key, freeAtMs: number): Promise<void> {
  await trx(INSTANCES)
    .where(key)
    .where((earlier) => void earlier.whereNull('hosts_free_at').orWhere('hosts_free_at', '<', freeAtMs))
    .update({ hosts_free_at: freeAtMs });
}

/** Ends a rest sooner that has begun. What a host itself has asked for is not changed. */
export async function shortenRest(trx: Knex.Transaction, key: Key, freeAtMs: number): Promise<void> {
  const own = trx(INSTANCES).where(key).forUpdate();
  const begun = (await rowOf<Rest>(own.first('hosts_free_at')))?.hosts_free_at ?? null;
  if (begun === null || toNumber(begun) <= freeAtMs) return;
  await trx(INSTANCES).where(key).update({ hosts_free_at: freeAtMs });
  const chunks = await grantedChunks(trx, key);
  const waiting = trx(CHUNKS).where({ run_id: key.run_id, state: 'waiting', slot: null, due_at: toNumber(begun) });
  // Of a host that is crawled in slices another one waits than those that it was granted.
  const slices = chunks.filter(isSlice).map(({ slice_of: sliceOf }) => sliceOf);
  const whole = chunks.filter((chunk) => !isSlice(chunk)).map(({ idx }) => idx);
  for (const piece of inPieces([...new Set(slices)], INDEXES))
    await waiting.clone().whereIn('slice_of', piece).update({ due_at: freeAtMs });
  for (const piece of inPieces(whole, INDEXES))
    await waiting.clone().whereIn('idx', piece).update({ due_at: freeAtMs });
}

/**
 * No other instance asks these hosts, which the run had last, for one gap: a record that has moved away is no product
 * of theirs any more that would say when they were asked last.
 */
export async function restForGap(
  trx: Knex.Transaction,
  { runId, intervalMs, nowMs }: { runId: string; intervalMs: number; nowMs: number },
  hosts: ReadonlySet<string>,
): Promise<void> {
  for (const piece of inPieces([...hosts].sort(), LIST)) {
    const own = trx(HOSTS).where({ run_id: runId }).whereIn('host', piece).orderBy('host').forUpdate();
    const rows = (await rowsOf<Asked & { host: string }>(own)).map((row) => {
      const freeAtMs = nowMs + gapOf(row, intervalMs);
      return { host: row.host, not_before: Math.max(toNumber(row.not_before), freeAtMs) };
    });
    if (rows.length > 0) await trx(HOSTS).insert(rows).onConflict('host').merge(['not_before']);
  }
}

/** Moves all rests of a run that end after this time: its main server's clock has been set by so much. */
export async function moveAllRests(trx: Knex.Transaction, runId: string, byMs: number, afterMs: number): Promise<void> {
  const run = { run_id: runId };
  const moved = (column: string): Record<string, Knex.Raw> => ({ [column]: trx.raw('?? + ?', [column, byMs]) });
  await trx(INSTANCES).where(run).where('hosts_free_at', '>', afterMs).update(moved('hosts_free_at'));
  await trx(HOSTS).where(run).where('not_before', '>', afterMs).update(moved('not_before'));
  await trx(CHUNKS)
    .where({ ...run, state: 'waiting', slot: null })
    .where('due_at', '>', afterMs)
    .where('due_at', '<', NOT_NEXT_MS)
    .update(moved('due_at'));
}

/** A row of crawlfleet_hosts, as far as it says when the host may be asked. */
interface Asked {
  run_id: string | null;
  slot: number | null;
  epoch: number | null;
  delay_ms: SqlNumber | null;
  pace_ms: SqlNumber | null;
  not_before: SqlNumber | null;
}

/** These rows, `not_before` no sooner than the rest after the last owner of each is over. */
export async function withRests<T extends Asked>(knex: Knex, rows: readonly T[]): Promise<T[]> {
  const owners = new Map(rows.flatMap(ownerOf).map((owner) => [ownerKey(owner), owner]));
  const freeAt = new Map<string, number>();
  for (const piece of inPieces([...owners.values()], LIST)) {
    const resting = knex(INSTANCES)
      .whereNotNull('hosts_free_at')
      .where((any) => {
        for (const owner of piece) void any.orWhere(owner);
      });
    for (const rest of await rowsOf<Rest>(resting.select('run_id', 'slot', 'epoch', 'hosts_free_at')))
      freeAt.set(ownerKey(rest), toNumber(rest.hosts_free_at));
  }
  return rows.map((row) => {
    const [freeAtMs] = ownerOf(row).flatMap((owner) => freeAt.get(ownerKey(owner)) ?? []);
    if (freeAtMs === undefined) return row;
    return { ...row, not_before: Math.max(toNumber(row.not_before), Math.ceil(freeAtMs + ownGapMs(row))) };
  });
}

/** The time from one request to the next at a host, by what it and an operator ask for. */
export const gapOf = ({ delay_ms, pace_ms }: Pick<Asked, 'delay_ms' | 'pace_ms'>, intervalMs: number): number =>
  Math.ceil(hostGapMs(intervalMs, Math.max(toNumber(delay_ms), toNumber(pace_ms))));

/** The instance that had the last grant; none for a host that was never granted. */
const ownerOf = ({ run_id, slot, epoch }: Asked): Key[] =>
  run_id === null || slot === null || epoch === null ? [] : [{ run_id, slot, epoch }];

const ownerKey = ({ run_id, ...at }: Key): string => `${run_id} ${epochKey(at)}`;

/** The gap that the host itself or an operator asks for; that of the run is in the rest. */
const ownGapMs = ({ delay_ms, pace_ms }: Asked): number => {
  const ownMs = Math.max(toNumber(delay_ms), toNumber(pace_ms));
  return ownMs === 0 ? 0 : hostGapMs(0, ownMs);
};
