/** WorkStore in memory: the contract of core/db/work-store.ts. Nothing that a heartbeat causes visits all chunks. */
import { type EpochId, epochKey } from '../../../../shared/domain/epoch-id.ts';
import { kindText, missReason } from '../../../../shared/domain/failure-kind.ts';
import type { FailureReason, OutcomeCounts } from '../../../../shared/domain/outcome.ts';
import { LEFT_ALONE_DETAILS } from '../../../../shared/domain/own-url.ts';
import { hostGapMs } from '../../../../shared/domain/host-policy.ts';
import { REFUSALS } from '../../../../shared/wire/callbacks.ts';
import { isServing } from '../../../../shared/domain/states.ts';
import { beginsAtMs, NOT_NEXT_MS, nextDueAtMs } from '../../../../shared/domain/sharing.ts';
import type {
  FailedProduct,
  GrantedShare,
  HostNote,
  HostWish,
  LedgerMisses,
  NotedHost,
  OpenChunk,
  OwnedChunk,
  WaitingHosts,
  WorkCounts,
  WorkStore,
} from '../../model/stores.ts';
import { type HostsAsker, HostTally, type RunHosts } from '../../model/run-hosts.ts';
import { chunkId, hostOfItem, parseChunkId } from '../../db/chunk-rows.ts';
import { BoundMemory, chunkOf, type MemoryChunk, type MemoryItem, type MemoryRun } from './memory-database.ts';

export class MemoryWorkStore extends BoundMemory implements WorkStore {
  counts(): Promise<WorkCounts> {
    return this.read('work.counts', (run) => (run.counts ??= count(run)));
  }

  waiting(limit: number, except: Pick<ReadonlySet<string>, 'has' | 'size'>): Promise<OpenChunk[]> {
    return this.read('work.waiting', (run) => {
      const found: OpenChunk[] = [];
      let seen = 0;
      for (let i = run.firstWaiting; seen < limit; i++) {
        const chunk = run.chunks[i];
        if (chunk === undefined) break;
        if (chunk.state !== 'waiting') {
          if (i === run.firstWaiting) run.firstWaiting++;
          continue;
        }
        if (except.has(chunk.id) || chunk.owner !== null || !isDue(chunk, this.now())) continue;
        seen++;
        const products = openItems(run, chunk).map(({ n, id }) => ({ n, id }));
        if (products.length > 0) found.push({ id: chunk.id, products });
        else close(run, chunk);
      }
      return found;
    });
  }

  nextSlices(at: EpochId, limit: number): Promise<OpenChunk[]> {
    return this.read('work.nextSlices', (run) => {
      const found: OpenChunk[] = [];
      let room = limit;
      for (const sliceOf of hostsOf(owned(run, at))) {
        const next = nextSlice(run, sliceOf, at, this.now());
        if (next === null) continue;
        room -= next.products.length;
        if (room < 0 && found.length > 0) break;
        found.push(next);
      }
      return found;
    });
  }

  grant({ slot, epoch }: EpochId, chunkIds: readonly string[], limitChunks: number): Promise<string[]> {
    const asked = chunkIds.map(parseChunkId).filter((c) => c !== null);
    if (asked.length === 0) return Promise.resolve([]);
    return this.write('work.grant', (run) => {
      const key = epochKey({ slot, epoch });
      const holder = run.instances.get(key);
      const mayTake = holder !== undefined && isServing(holder.phase);
      let room = mayTake ? limitChunks - owned(run, { slot, epoch }).length : 0;
      const granted: string[] = [];
      const taken = new Set<number>();
      for (const { index, generation } of asked) {
        const chunk = run.chunks[index - 1];
        if (!chunk || chunk.generation !== generation || taken.has(index)) continue;
        if (isOwn(chunk, { slot, epoch })) granted.push(chunk.id);
        if (chunk.state !== 'waiting' || !isDue(chunk, this.now())) continue;
        const isReserved = chunk.owner !== null;
        if (chunk.owner === null ? room <= 0 : !mayTake || epochKey(chunk.owner) !== key) continue;
        if (!isReserved) room--;
        taken.add(index);
        granted.push(chunk.id);
        grantTo(run, chunk, { slot, epoch, atMs: this.now() });
        chunk.lastGrant = { slot, epoch, number: ++run.grantsMade };
        const kept = run.grants.get(key) ?? new Set();
        run.grants.set(key, kept.add(chunk.index));
      }
      return granted;
    });
  }

  returnChunks(at: EpochId, freeAtMs?: number): Promise<number> {
    return this.write('work.returnChunks', (run) => {
      const own = owned(run, at);
      // A host that it has left before has another owner by now.
      const left = [...hostsOf(own)].filter((sliceOf) => isOwner(run, sliceOf, at));
      const products = own.reduce((sum, chunk) => sum + nextGeneration(run, chunk, freeAtMs), 0);
      for (const sliceOf of left) leaveHost(run, sliceOf, at, freeAtMs ?? null);
      if (freeAtMs !== undefined) rest(run, at, Math.max(freeAtMs, run.rests.get(epochKey(at)) ?? 0));
      return products;
    });
  }

  freeHosts(at: EpochId, freeAtMs: number): Promise<void> {
    return this.write('work.freeHosts', (run) => {
      const begunMs = run.rests.get(epochKey(at)) ?? 0;
      if (begunMs <= freeAtMs) return;
      for (const chunk of everGranted(run, at))
        for (const slice of chunk.hosts?.sliceOf == null ? [chunk] : slicesOf(run, chunk.hosts.sliceOf))
          if (slice.state === 'waiting' && slice.owner === null && slice.dueAtMs === begunMs)
            change(run, slice, { dueAtMs: freeAtMs });
      rest(run, at, freeAtMs);
    });
  }

  moveRests(byMs: number, afterMs: number): Promise<void> {
    return this.write('work.moveRests', (run) => {
      const moved = (untilMs: number): number => (untilMs > afterMs ? untilMs + byMs : untilMs);
      for (const [key, untilMs] of run.rests) run.rests.set(key, moved(untilMs));
      for (const note of run.hosts.values())
        Object.assign(note, { notBeforeMs: moved(note.notBeforeMs), restUntilMs: moved(note.restUntilMs) });
      for (const chunk of run.chunks)
        if (chunk.state === 'waiting' && chunk.owner === null && chunk.dueAtMs !== null && chunk.dueAtMs < NOT_NEXT_MS)
          change(run, chunk, { dueAtMs: moved(chunk.dueAtMs) });
    });
  }

  chunksOf(at: EpochId): Promise<OwnedChunk[]> {
    return this.read('work.chunksOf', (run) =>
      owned(run, at)
        .sort((a, b) => (b.grant?.atMs ?? 0) - (a.grant?.atMs ?? 0) || b.index - a.index)
        .map((chunk) => ({ id: chunk.id, open: openItems(run, chunk).length }))
        .filter((chunk) => chunk.open > 0),
    );
  }

  transferChunks(at: EpochId, chunkIds: readonly string[]): Promise<number> {
    const asked = new Set(chunkIds);
    if (asked.size === 0) return Promise.resolve(0);
    return this.write('work.transferChunks', (run) => {
      const given = owned(run, at).filter((chunk) => asked.has(chunk.id) && openItems(run, chunk).length > 0);
      const products = given.reduce((sum, chunk) => sum + nextGeneration(run, chunk), 0);
      // Where it has another slice of the host to crawl, it is its owner still.
      for (const sliceOf of hostsOf(given)) {
        const last = openSlices(run, sliceOf, at).at(-1);
        if (last === undefined) leaveHost(run, sliceOf, at, null);
        else offerNextSlice(run, sliceOf, at, nextDue(run, last));
      }
      return products;
    });
  }

  noteHosts(at: EpochId, notes: readonly HostNote[]): Promise<void> {
    return this.write('work.noteHosts', (run) => {
      const last = lastGrantsOf(run, at);
      for (const { host, delayMs = 0, notBeforeMs = 0, refusals = 0 } of notes) {
        if (!last.has(host)) continue;
        const known = run.hosts.get(host) ?? { delayMs: 0, notBeforeMs: 0, refusals: 0, restUntilMs: 0 };
        run.hosts.set(host, {
          ...known,
          host,
          delayMs: Math.max(known.delayMs, delayMs),
          notBeforeMs: Math.max(known.notBeforeMs, notBeforeMs),
          refusals: known.refusals === REFUSALS.once ? refusals : Math.max(known.refusals, refusals),
        });
      }
    });
  }

  hostNotes(chunkIds: readonly string[]): Promise<NotedHost[]> {
    const asked = new Set(chunkIds);
    return this.read('work.hostNotes', (run) => {
      const indexes = chunkIds.map(parseChunkId).flatMap((c) => (c === null ? [] : [c.index]));
      const chunks = indexes.flatMap((index) => run.chunks[index - 1] ?? []).filter(({ id }) => asked.has(id));
      const hosts = new Set(
        chunks.flatMap((chunk) => openItems(run, chunk).flatMap((item) => hostOf(run, item) ?? [])),
      );
      return notesOf(run, [...hosts].sort());
    });
  }

  /** No operator asks for anything here. */
  hostWishes(): Promise<HostWish[]> {
    return Promise.resolve([]);
  }

  anyStored(): Promise<string | null> {
    const find = ({ items }: MemoryRun): string | null => items.find(({ outcome }) => outcome === 'stored')?.id ?? null;
    return this.read('work.anyStored', find);
  }

  failedProducts(after: number, limit: number, reasons?: readonly FailureReason[]): Promise<FailedProduct[]> {
    return this.read('work.failedProducts', (run) =>
      run.items
        .flatMap(({ n, id, outcome, reason, detail }) =>
          outcome === 'failed' && reason !== null && n > after && (reasons?.includes(reason) ?? true)
            ? [{ n, id, reason, detail }]
            : [],
        )
        .slice(0, limit),
    );
  }

  failRest(reason: FailureReason): Promise<number> {
    return this.write('work.failRest', (run) => {
      const open = run.items.filter((item) => item.outcome === null);
      for (const item of open) Object.assign(item, { outcome: 'failed', reason });
      for (const chunk of run.chunks) if (chunk.state === 'waiting') close(run, chunk);
      return open.length;
    });
  }

  outcomes(): ReturnType<WorkStore['outcomes']> {
    const counts = { planned: 0, open: 0, stored: 0, gone: 0, failed: 0 };
    const reasons: Partial<Record<FailureReason, number>> = {};
    return this.read('work.outcomes', ({ items }) => {
      for (const { outcome, reason } of items) {
        counts[outcome ?? 'open']++;
        if (outcome === 'failed' && reason) reasons[reason] = (reasons[reason] ?? 0) + 1;
      }
      return { ...counts, planned: items.length, reasons };
    });
  }

  leftAlone(): Promise<number> {
    const { whole, end } = LEFT_ALONE_DETAILS;
    return this.read('work.leftAlone', ({ items }) =>
      items.reduce(
        (sum, { detail }) => sum + Number(whole.includes(detail ?? '') || detail?.endsWith(end) === true),
        0,
      ),
    );
  }

  misses(limit: number): Promise<LedgerMisses[]> {
    return this.read('work.misses', ({ items }) => {
      const groups = new Map<string, LedgerMisses>();
      for (const { id, outcome, reason, ...item } of items) {
        const why = missReason(outcome, reason);
        if (why === null) continue;
        const detail = item.detail === null ? null : kindText(why, item.detail);
        const key = `${why} ${detail}`;
        const group = groups.get(key) ?? { reason: why, detail, products: 0, example: id };
        group.products++;
        groups.set(key, group);
      }
      return [...groups.values()].sort((a, b) => b.products - a.products).slice(0, limit);
    });
  }

  hosts(asker: HostsAsker): Promise<RunHosts> {
    return this.read('work.hosts', (run) => {
      const tally = new HostTally();
      for (const item of run.items) tally.add(hostOf(run, item), item.outcome, item.reason);
      return tally.result(notesOf(run, tally.openHosts()), asker);
    });
  }

  outcomesBySlot(): Promise<(EpochId & OutcomeCounts)[]> {
    return this.read('work.outcomesBySlot', ({ items }) => {
      const bySlot = new Map<string, EpochId & OutcomeCounts>();
      for (const { slot, epoch, outcome } of items) {
        if (slot === null || epoch === null || outcome === null) continue;
        const key = epochKey({ slot, epoch });
        const counts = bySlot.get(key) ?? { slot, epoch, stored: 0, gone: 0, failed: 0 };
        counts[outcome]++;
        bySlot.set(key, counts);
      }
      return [...bySlot.values()].sort((a, b) => a.slot - b.slot || a.epoch - b.epoch);
    });
  }
}

/** Closes these products' waiting chunks that were reassigned and have nothing left to crawl. */
export function closeReturned(run: MemoryRun, settled: readonly MemoryItem[]): void {
  for (const chunk of new Set(settled.map((item) => chunkOf(run, item.n)))) {
    if (chunk.state === 'waiting' && chunk.generation > 1 && openItems(run, chunk).length === 0) close(run, chunk);
  }
}

function openItems(run: MemoryRun, chunk: MemoryChunk): MemoryItem[] {
  return run.items.slice(chunk.first - 1, chunk.last).filter((item) => item.outcome === null);
}

/** What is stored of these hosts; no operator asks for anything here. */
function notesOf(run: MemoryRun, hosts: readonly string[]): NotedHost[] {
  return hosts.flatMap((host): NotedHost[] => {
    const note = run.hosts.get(host);
    if (note === undefined) return [];
    const { delayMs, refusals, restUntilMs } = note;
    const notBeforeMs = Math.max(note.notBeforeMs, restUntilMs);
    const noted = { delayMs: delayMs || null, notBeforeMs: notBeforeMs || null, refusals: refusals || null };
    return [{ host, ...noted, paceMs: null, denied: null }];
  });
}

const hostOf = ({ record }: MemoryRun, { url, id }: MemoryItem): string | null =>
  hostOfItem({ path: url ?? id }, record.settings.site.hostKey);

/** The chunks say it of hosts; of those with a Crawl-delay more, because the run's own gap is in `freeAtMs`. */
function rest(run: MemoryRun, at: EpochId, freeAtMs: number): void {
  run.rests.set(epochKey(at), freeAtMs);
  const slow = [...run.hosts].filter(([, { delayMs }]) => delayMs > 0);
  if (slow.length === 0) return;
  const own = lastGrantsOf(run, at);
  for (const [host, note] of slow) {
    if (!own.has(host)) continue;
    run.hosts.set(host, { ...note, restUntilMs: Math.ceil(freeAtMs + hostGapMs(0, note.delayMs)) });
  }
}

/** The chunks that an instance was granted at any time. */
const everGranted = ({ grants, chunks }: MemoryRun, at: EpochId): MemoryChunk[] =>
  [...(grants.get(epochKey(at)) ?? [])].map((index) => chunks[index - 1]!);

/** The hosts of which an instance had the last grant. Found only where something is noted: URLs take long to read. */
function lastGrantsOf(run: MemoryRun, at: EpochId): Set<string> {
  const hosts = new Set<string>();
  for (const chunk of everGranted(run, at)) {
    const same = chunk.hosts !== null && chunk.hosts.sliceOf !== null ? slicesOf(run, chunk.hosts.sliceOf) : [chunk];
    const grants = same.flatMap(({ lastGrant }) => lastGrant ?? []);
    const last = grants.reduce((a, b) => (b.number > a.number ? b : a));
    if (epochKey(last) !== epochKey(at)) continue;
    for (const item of run.items.slice(chunk.first - 1, chunk.last)) {
      const host = hostOf(run, item);
      if (host !== null) hosts.add(host);
    }
  }
  return hosts;
}

const isOwn = (chunk: MemoryChunk, { slot, epoch }: EpochId): boolean =>
  chunk.grant?.slot === slot && chunk.grant.epoch === epoch;

const owned = (run: MemoryRun, at: EpochId): MemoryChunk[] => [...(run.granted.get(epochKey(at)) ?? [])];

function close(run: MemoryRun, chunk: MemoryChunk): void {
  const { hosts, owner, dueAtMs } = chunk;
  change(run, chunk, { state: 'closed', grant: null, owner: null });
  if (hosts !== null && hosts.sliceOf !== null && dueAtMs !== NOT_NEXT_MS)
    offerNextSlice(run, hosts.sliceOf, owner, dueAtMs);
}

const isDue = ({ dueAtMs }: MemoryChunk, nowMs: number): boolean => dueAtMs === null || dueAtMs <= nowMs;

/** The hosts of which these chunks are slices, by the index of their first one. */
const hostsOf = (chunks: readonly MemoryChunk[]): Set<number> =>
  new Set(chunks.flatMap(({ hosts }) => hosts?.sliceOf ?? []));

/** The slices of a host, in order. */
function slicesOf({ chunks }: MemoryRun, sliceOf: number): MemoryChunk[] {
  const slices: MemoryChunk[] = [];
  for (let i = sliceOf - 1; chunks[i]?.hosts?.sliceOf === sliceOf; i++) slices.push(chunks[i]!);
  return slices;
}

/** The slices of a host that an instance has not crawled entirely. */
const openSlices = (run: MemoryRun, sliceOf: number, at: EpochId): MemoryChunk[] =>
  slicesOf(run, sliceOf).filter((slice) => isOwn(slice, at) && openItems(run, slice).length > 0);

/** Whether an instance has a slice of the host to crawl, or is the one that the next slice is kept for. */
const isOwner = (run: MemoryRun, sliceOf: number, at: EpochId): boolean =>
  openSlices(run, sliceOf, at).length > 0 ||
  slicesOf(run, sliceOf).some(({ owner }) => owner !== null && epochKey(owner) === epochKey(at));

/** The slice of a host that is due for its owner; slices without open products are closed on the way to it. */
function nextSlice(run: MemoryRun, sliceOf: number, at: EpochId, nowMs: number): OpenChunk | null {
  for (const slice of slicesOf(run, sliceOf)) {
    if (slice.state !== 'waiting') continue;
    if (slice.owner === null || epochKey(slice.owner) !== epochKey(at) || !isDue(slice, nowMs)) return null;
    const products = openItems(run, slice).map(({ n, id }) => ({ n, id }));
    if (products.length > 0) return { id: slice.id, products };
    close(run, slice);
  }
  return null;
}

/** Frees a host; what its owner has crawled of it says no more when the host ends. */
function leaveHost(run: MemoryRun, sliceOf: number, at: EpochId, dueAtMs: number | null): void {
  for (const slice of slicesOf(run, sliceOf)) if (isOwn(slice, at)) change(run, slice, { dueAtMs: null });
  offerNextSlice(run, sliceOf, null, dueAtMs);
}

/** Of the slices of a host that wait the first is offered, to its owner if it has one; the others are not yet. */
function offerNextSlice(run: MemoryRun, sliceOf: number, owner: EpochId | null, dueAtMs: number | null): void {
  let isNext = true;
  for (const slice of slicesOf(run, sliceOf)) {
    if (slice.state !== 'waiting') continue;
    change(run, slice, isNext ? { owner, dueAtMs } : { owner: null, dueAtMs: NOT_NEXT_MS });
    if (isNext) run.firstWaiting = Math.min(run.firstWaiting, slice.index - 1);
    isNext = false;
  }
}

function grantTo(run: MemoryRun, chunk: MemoryChunk, grant: NonNullable<MemoryChunk['grant']>): void {
  const { hosts, owner, dueAtMs } = chunk;
  if (hosts === null) return change(run, chunk, { state: 'granted', grant });
  const { slot, epoch, atMs } = grant;
  const lengthMs = hosts.leftMs - (sliceAfter(run, chunk)?.hosts?.leftMs ?? 0);
  const begins = beginsAtMs(atMs, owner === null ? null : dueAtMs, lengthMs);
  change(run, chunk, { state: 'granted', grant, owner: null, dueAtMs: begins });
  if (hosts.sliceOf !== null) offerNextSlice(run, hosts.sliceOf, { slot, epoch }, nextDue(run, chunk));
}

/** When the slice after this one is offered to the owner of both. */
function nextDue(run: MemoryRun, { hosts, dueAtMs, ...slice }: MemoryChunk): number {
  const leftMs = hosts?.leftMs ?? 0;
  return nextDueAtMs({ dueAtMs: dueAtMs ?? 0, leftMs }, sliceAfter(run, { hosts, ...slice })?.hosts?.leftMs ?? 0);
}

const sliceAfter = (
  { chunks }: MemoryRun,
  { index, hosts }: Pick<MemoryChunk, 'index' | 'hosts'>,
): MemoryChunk | undefined => {
  const next = chunks[index];
  return hosts?.sliceOf != null && next?.hosts?.sliceOf === hosts.sliceOf ? next : undefined;
};

/** The only way a chunk changes: a recount of all of them at each heartbeat would take most of a large run. */
function change(run: MemoryRun, chunk: MemoryChunk, values: Partial<MemoryChunk>): void {
  if (chunk.state === 'waiting') run.waiting--;
  if (chunk.grant !== null) run.granted.get(epochKey(chunk.grant))?.delete(chunk);
  Object.assign(chunk, values);
  if (chunk.state === 'waiting') run.waiting++;
  if (chunk.grant !== null) {
    const key = epochKey(chunk.grant);
    const own = run.granted.get(key) ?? new Set();
    run.granted.set(key, own.add(chunk));
  }
  run.counts = null;
}

/** Makes a chunk wait again if it has products without outcome; returns how many. */
function nextGeneration(run: MemoryRun, chunk: MemoryChunk, freeAtMs?: number): number {
  const products = openItems(run, chunk).length;
  if (products === 0) return 0;
  const generation = chunk.generation + 1;
  const id = chunkId({ idx: chunk.index, generation });
  const dueAtMs = chunk.hosts === null ? null : (freeAtMs ?? null);
  change(run, chunk, { id, state: 'waiting', generation, products, grant: null, dueAtMs });
  run.firstWaiting = Math.min(run.firstWaiting, chunk.index - 1);
  return products;
}

function count({ chunks, waiting, granted, firstWaiting }: MemoryRun): WorkCounts {
  const bySlot = [...granted.values()].flatMap((own): GrantedShare[] => {
    const [first] = own;
    if (first?.grant == null) return [];
    let products = 0;
    for (const chunk of own) products += chunk.products;
    const { slot, epoch } = first.grant;
    const share = { slot, epoch, chunks: own.size, products };
    return [first.hosts === null ? share : { ...share, hostsEndMs: hostsEndMs(own) }];
  });
  bySlot.sort((a, b) => a.slot - b.slot || a.epoch - b.epoch);
  const counts = { chunks: chunks.length, waiting, granted: bySlot.reduce((sum, own) => sum + own.chunks, 0), bySlot };
  return chunks[0]?.hosts == null ? counts : { ...counts, byHost: waitingHosts(chunks, firstWaiting) };
}

function hostsEndMs(own: Iterable<MemoryChunk>): number {
  let endMs = 0;
  for (const { hosts, dueAtMs } of own)
    if (hosts !== null && dueAtMs !== null) endMs = Math.max(endMs, dueAtMs + hosts.leftMs);
  return endMs;
}

function waitingHosts(chunks: readonly MemoryChunk[], from: number): WaitingHosts {
  const waiting = { products: 0, longestMs: 0 };
  let firstMs = Infinity;
  for (let i = from; i < chunks.length; i++) {
    const { state, products, owner, dueAtMs, hosts } = chunks[i]!;
    if (state !== 'waiting') continue;
    waiting.products += products;
    if (owner !== null || dueAtMs === NOT_NEXT_MS) continue;
    waiting.longestMs = Math.max(waiting.longestMs, hosts?.leftMs ?? 0);
    firstMs = Math.min(firstMs, dueAtMs ?? 0);
  }
  return { ...waiting, restUntilMs: firstMs === Infinity ? 0 : firstMs };
}
