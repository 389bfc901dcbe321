/**
 * The instance's queue: accepts offers, follows orders, and keeps the results of products. Every change is in the
 * journal before it is reported.
 */
import { isDeepStrictEqual } from 'node:util';
import { type ProductUrl, templatesOf } from '../../shared/domain/domains.ts';
import { type Refusal, refusalOf } from '../../shared/domain/offer-refusal.ts';
import { isRetryable } from '../../shared/domain/outcome.ts';
import { easedIntervalMs, isEased } from '../../shared/domain/pacing.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Heartbeat, HostNews, Orders, PartRef, Progress } from '../../shared/wire/callbacks.ts';
import type { Offer } from '../../shared/wire/instance-api.ts';
import type { ItemResult } from '../../shared/wire/part.ts';
import type { ClockReading, Purpose } from '../../shared/wire/request-log.ts';
import { type Journal, JournalWriter } from './journal-writer.ts';
import type { Item } from './items.ts';
import type { QueueState } from './queue-state.ts';
import { atDomain, CANARY_PAGE, type JournalRecord } from './records.ts';
import { NO_RESERVE, type Reserve } from './reserve-file.ts';
import type { Cut } from './result-lines.ts';
import type { PageAnswer, PageResult } from '../fetch/page-result.ts';
import type { JudgementKind } from '../politeness/judgement.ts';

export type OfferAnswer = { taken: true; held: number } | ({ taken: false } & Refusal);

interface QueueDefaults {
  intervalMs: number;
  deadlineMs: number;
  productUrl: ProductUrl;
  /** Domains that banned an address lately. */
  bannedLately?: readonly number[] | undefined;
  /** How long it may ask hosts after an accepted heartbeat; omitted in a run of one site. */
  leaseMs?: number | undefined;
}

/** A request that is being sent. */
interface SentPage {
  domain?: number;
  browser?: boolean;
  /** Requests to other domains may be under way. */
  beside?: boolean;
  /** Omitted: the domain's own. */
  host?: string;
  what?: Exclude<Purpose, 'canary'>;
}

export class Queue {
  readonly state: QueueState;
  readonly #writer: JournalWriter;
  readonly #clock: Clock;
  readonly #defaults: QueueDefaults;
  /** Wall-clock time of monotonic zero: setting the system clock does not change the gaps of start times. */
  readonly #wallMs: number;
  /** Returned chunks whose record is known to be on the disk: only these may be reported. */
  readonly #returned = new Set<string>();
  #closing = false;
  #reading: ClockReading | null = null;
  /** When the last accepted heartbeat was sent; null before the first one of this process. */
  #leasedAt: { wallMs: number; monotonicMs: number } | null = null;
  /** Maximum products to hold; null: the share in the offers. The main server repeats it after a restart. */
  #maxProducts: number | null = null;
  /** The products being visited, also while they wait for their turn: at most one of each domain. */
  readonly visiting = new Set<number>();
  readonly tally = new SiteTally();
  /** Of many hosts: what of an operator's wishes this process has heard; undefined before the first. */
  wishesHeard: string | undefined;

  constructor(
    state: QueueState,
    journal: Journal,
    clock: Clock,
    {
      reserve = NO_RESERVE,
      mask = (record) => record,
      ...defaults
    }: QueueDefaults & { reserve?: Reserve | undefined; mask?: (record: JournalRecord) => JournalRecord },
  ) {
    this.state = state;
    this.#writer = new JournalWriter(state, { journal, reserve, mask }, clock);
    this.#clock = clock;
    this.#wallMs = clock.now() - clock.monotonic();
    this.#defaults = defaults;
  }

  /** What is wrong with the disk; null when nothing is. */
  get diskProblem(): string | null {
    return this.#writer.problem;
  }

  /** The interval as ordered, whatever the Crawl-delay of a domain. */
  get #intervalMs(): number {
    return this.state.orders?.intervalMs ?? this.#defaults.intervalMs;
  }

  /**
   * The interval at a domain, never below the Crawl-delay of the rules in force: a main server that has just started
   * may not have read them yet. Longer for the first pages after a ban.
   */
  intervalAt(domain: number): number {
    const intervalMs = this.state.intervalAt(domain, this.#defaults.intervalMs);
    const sinceBan = this.#sinceBan(domain);
    return sinceBan === null ? intervalMs : easedIntervalMs(intervalMs, sinceBan);
  }

  /** Products stored since the last ban at a domain, while its interval is longer for it; else null. */
  #sinceBan(domain: number): number | null {
    const { bans, rightPages } = this.state.domains.at(domain);
    const isBanned = bans > 0 || this.#defaults.bannedLately?.includes(domain) === true;
    return isBanned && isEased(rightPages) ? rightPages : null;
  }

  get deadlineMs(): number {
    return this.state.orders ? Date.parse(this.state.orders.deadline) : this.#defaults.deadlineMs;
  }

  /** Until when an operator wants no request from the fleet; 0 without a pause. */
  get pausedUntilMs(): number {
    const { pausedUntil } = this.state.orders ?? {};
    return pausedUntil === undefined ? 0 : Date.parse(pausedUntil);
  }

  get isSealed(): boolean {
    return this.state.orders?.sealed ?? false;
  }

  /** True when no further request may be sent: an order to drain, or the epoch is being closed. */
  get isDraining(): boolean {
    const { manifestText, drained, orders } = this.state;
    return this.#closing || manifestText !== null || drained || (orders?.drain ?? false);
  }

  /** True when every product that will ever be granted has its outcome. */
  get isFinished(): boolean {
    return this.isSealed && this.state.items.openCount === 0;
  }

  /**
   * False when the hosts of this instance may have another owner: a lease after it sent the last heartbeat that was
   * accepted. Of the two clocks the one counts that has advanced more: the monotonic one stands still in a machine that
   * is suspended. Always true in a run of one site.
   */
  get isLeased(): boolean {
    const { leaseMs } = this.#defaults;
    if (leaseMs === undefined) return true;
    if (this.#leasedAt === null) return false;
    const { wallMs, monotonicMs } = this.#leasedAt;
    return this.#clock.monotonic() - monotonicMs < leaseMs && this.#clock.now() - wallMs < leaseMs;
  }

  /** The main server has accepted a heartbeat that was sent then: it has what that says of hosts. */
  noteAccepted(sent: { wallMs: number; monotonicMs: number; message: Pick<Heartbeat, 'hosts'> }): void {
    this.#leasedAt = sent;
    const { domains, numbers } = this.state;
    for (const { host, delayMs = 0, waitMs = 0, refusals = 0 } of sent.message.hosts ?? []) {
      const domain = numbers.find?.(host);
      if (domain === undefined) continue;
      const at = domains.at(domain);
      // It may have learned more since.
      const isAll = at.delayMs <= delayMs && at.pausedUntilMs <= sent.wallMs + waitMs + 1;
      if (isAll && domains.refusalsAt(domain) === refusals) domains.news.delete(domain);
    }
  }

  /** What the main server must know of hosts before they are asked again. */
  hostNews(limit: number): HostNews[] {
    const nowMs = this.#clock.now();
    const { domains, numbers } = this.state;
    return [...domains.news].slice(0, limit).map((domain) => {
      const { delayMs, pausedUntilMs } = domains.at(domain);
      const refusals = domains.refusalsAt(domain);
      const waitMs = Math.max(0, pausedUntilMs - nowMs);
      return {
        host: numbers.hostOf(domain),
        delayMs,
        ...(waitMs === 0 ? {} : { waitMs }),
        ...(refusals === 0 ? {} : { refusals }),
      };
    });
  }

  /** Takes the next slices of hosts that are its own, within no share. */
  async takeSlices(slices: NonNullable<Orders['nextSlices']>): Promise<number> {
    const { chunks, transferred } = this.state;
    const fresh =
      this.isDraining || this.isSealed
        ? []
        : slices.filter(({ chunk }) => !chunks.has(chunk) && !transferred.has(chunk));
    if (fresh.length === 0) return 0;
    this.#writer.takeOn(...fresh.map(({ chunk, products }): JournalRecord => ({ t: 'offered', chunk, products })));
    await this.#writer.sync();
    return fresh.length;
  }

  /** Accepts an offered chunk, on disk when it resolves; the same chunk is accepted again. */
  async offer(offer: Offer): Promise<OfferAnswer> {
    // A late copy of the offer that brought the chunk here: another instance should get it.
    if (this.state.transferred.has(offer.chunk)) return { taken: false, refused: 'share', room: 0 };
    const isHeld = this.state.chunks.has(offer.chunk);
    const refusal = isHeld ? null : this.#refuse(offer);
    if (refusal) return { taken: false, ...refusal };
    try {
      if (!isHeld) this.#writer.takeOn({ t: 'offered', chunk: offer.chunk, products: offer.products });
      await this.#writer.sync();
    } catch {
      return { taken: false, refused: 'disk', room: 0 };
    }
    return { taken: true, held: this.state.held };
  }

  #refuse({ share, products }: Offer): Refusal | null {
    const { incident, held, robots } = this.state;
    const { stored, gone, failed } = this.state.counts;
    return refusalOf(products.length, share, {
      isDraining: this.isDraining,
      isSealed: this.isSealed,
      hasIncident: incident !== null,
      held,
      open: held - stored - gone - failed,
      maxProducts: this.#maxProducts,
      leftMs: this.deadlineMs - Math.max(this.#clock.now(), this.pausedUntilMs),
      productUrl: this.#defaults.productUrl,
      robots,
      intervalMs: this.#intervalMs,
    });
  }

  /** Carries out the orders about chunks, robots.txt, pace and end; on disk when it resolves. Returns what changed. */
  async follow(orders: Orders): Promise<{ granted: number; transferred: number; changed: boolean }> {
    this.#maxProducts = orders.maxProducts;
    this.state.fleetPage = orders.canaryPage ?? this.state.fleetPage;
    const followed = await this.#followRest(orders);
    const transferred = await this.#transfer(orders.transfer);
    return { ...followed, transferred, changed: followed.changed || transferred > 0 };
  }

  /** Returns chunks that were not started; resolves to the number to report for the first time. */
  async #transfer(wanted: readonly string[]): Promise<number> {
    const { state } = this;
    const visited = new Set([...this.visiting].map((n) => state.items.get(n)?.chunk));
    const chunks = this.isDraining
      ? []
      : wanted.filter((id) => !visited.has(id) && !state.transferred.has(id) && state.isUntouched(id));
    if (chunks.length > 0) this.#writer.note({ t: 'transferred', chunks });
    const unreported = [...state.transferred].filter((id) => !this.#returned.has(id));
    if (unreported.length === 0) return 0;
    // Also after a restart: records that were replayed may not have reached the disk.
    await this.#writer.sync();
    for (const id of unreported) this.#returned.add(id);
    return unreported.length;
  }

  /** Returned chunks that the main server has not confirmed. */
  transferredChunks(): string[] {
    return [...this.state.transferred].filter((id) => this.#returned.has(id));
  }

  async #followRest(orders: Orders): Promise<{ granted: number; changed: boolean }> {
    const offered = new Set(this.state.offeredChunks());
    const grants = orders.grants.filter((chunk) => offered.has(chunk));
    const drops = orders.drops.filter((chunk) => offered.has(chunk) && !grants.includes(chunk));
    // No chunk is granted after the seal, so chunks that are only offered are dropped.
    if (orders.sealed)
      for (const chunk of offered) if (!grants.includes(chunk) && !drops.includes(chunk)) drops.push(chunk);
    const records: JournalRecord[] = [];
    const nowMs = this.#clock.now();
    // Before the grants: none of these hosts is asked before what holds for it is known.
    const notes = this.state.ownNotes(orders.hosts ?? [], grants);
    if (notes.length > 0)
      records.push({
        t: 'host-notes',
        notes: notes.map(({ waitMs, ...note }) => ({
          ...note,
          ...(waitMs === undefined ? {} : { untilMs: nowMs + waitMs }),
        })),
      });
    if (drops.length > 0) records.push({ t: 'dropped', chunks: drops });
    if (grants.length > 0) records.push({ t: 'granted', chunks: grants });
    const { intervalMs, deadline, sealed, drain, pausedUntil } = orders;
    const standing = { intervalMs, deadline, sealed, drain, ...(pausedUntil === undefined ? {} : { pausedUntil }) };
    let changed = !isDeepStrictEqual(this.state.orders, standing);
    if (changed) records.push({ t: 'ordered', ...standing });
    if (orders.robots !== null && orders.robots.version !== this.state.robots?.version) {
      records.push({ t: 'robots', policy: orders.robots });
      changed = true;
    }
    if (orders.partsAck > this.state.ackedSeq) records.push({ t: 'acked', seq: orders.partsAck });
    const taken = orders.transferredAck.filter((id) => this.state.transferred.has(id));
    if (taken.length > 0) records.push({ t: 'taken', chunks: taken });
    if (records.length > 0) this.#writer.note(...records);
    // Wishes about hosts that are not here are in no record. A new process gets all of them again.
    this.wishesHeard = orders.wishes ?? this.wishesHeard;
    if (records.length === 0) return { granted: 0, changed: false };
    if (grants.length > 0) await this.#writer.sync();
    else this.#writer.syncSoon();
    return { granted: grants.length, changed };
  }

  /** The clock of this process, by which requests are recorded: the wall clock when it began, and the time since. */
  get localMs(): number {
    return Math.round((this.#wallMs + this.#clock.monotonic()) * 1_000) / 1_000;
  }

  /** The times that follow are by the clock of this process. */
  recordProcess(): void {
    this.#writer.noteAnyway({ t: 'process', atMs: this.localMs });
  }

  /** Call before a request for product `n` or CANARY_PAGE; if it throws, the request must not be sent. */
  recordStart(n: number, atMs: number, sent: SentPage = {}): void {
    const { domain = 0, browser = false, beside = false, host, what = 'product' } = sent;
    const record: JournalRecord = { t: 'started', n, atMs, ...atDomain(domain) };
    if (browser) record.browser = true;
    if (beside) record.beside = true;
    if (host !== undefined && host !== this.state.numbers.hostOf(domain)) record.host = host;
    if (what === 'robots' || (n !== CANARY_PAGE && what !== 'product')) record.what = what;
    this.#writer.takeOn(record);
    this.#writer.syncSoon();
  }

  /** The domain's request has ended. */
  recordAnswer(answer: string, domain = 0): void {
    this.#tell({ t: 'answered', atMs: this.localMs, answer, ...atDomain(domain) });
  }

  /** One of many hosts has refused a page. */
  recordRefusal(domain: number): void {
    this.#tell({ t: 'refused', ...atDomain(domain) });
  }

  /** Writes a record that nothing depends on: on a full disk it is left out. */
  #tell(record: JournalRecord): void {
    try {
      this.#writer.takeOn(record);
      this.#writer.syncSoon();
    } catch {
      // The heartbeat reports the disk.
    }
  }

  /** False on a full disk, until space is freed. */
  hasRoom(): boolean {
    return this.#writer.hasRoom();
  }

  /** The request was aborted by an order, the deadline or the end of the process. */
  recordBrokenOff(domain = 0): void {
    if (this.state.underWay.isAt(domain)) this.note({ t: 'broken-off', ...atDomain(domain) });
  }

  /**
   * Writes the outcome of a try; a temporary failure of a first try gets a second one. `proves`: the result came from a
   * page that was right, so held results stand. `isFinal`: a second try would prove nothing new.
   */
  recordResult(item: Item, result: ItemResult, { proves = false, isFinal = false } = {}): void {
    const again = !isFinal && !item.again && result.outcome === 'failed' && isRetryable(result.reason);
    const records: JournalRecord[] = [{ t: again ? 'postponed' : 'result', result }];
    if (proves && this.state.items.at('held', item.domain).size > 0)
      records.push({ t: 'proved', atMs: this.#clock.now(), ...atDomain(item.domain) });
    this.note(...records);
  }

  /** No page that could prove the domain's held results is allowed: failures stand, others end as `giveUp` returns. */
  giveUpHeld(domain: number, giveUp: (item: Item, held: ItemResult) => ItemResult): void {
    const records: JournalRecord[] = [];
    for (const item of this.state.items.at('held', domain)) {
      const { held } = item;
      if (held !== null && held.outcome !== 'failed') records.push({ t: 'result', result: giveUp(item, held) });
    }
    this.note(...records, { t: 'accepted', ...atDomain(domain) });
  }

  /** Drops products that are not crawled, once all results are in the bucket (`uploading`: not yet). */
  release(): 'uploading' | 'released' | 'nothing-left' {
    const { lines, items, chunks } = this.state;
    const { from, to } = lines.uncut();
    if (from !== to || lines.cuts.length > 0) return 'uploading';
    if (items.openCount === 0 && [...chunks.values()].every((chunk) => chunk.products === null)) return 'nothing-left';
    this.note({ t: 'released' });
    return 'released';
  }

  /**
   * Moves the product that was being crawled when the process died to the end, after a restart. At the second death it
   * fails, because its page may be the cause. Of several, each may be the cause: each is tried alone, and only
   * a death while alone counts. Returns the products, for the log.
   */
  recoverDeath(poisoned: (item: Item) => ItemResult): Item[] {
    const items = this.state.underWay.numbers.flatMap((n) => this.state.items.get(n) ?? []);
    const [item, ...others] = items;
    if (item === undefined) return [];
    // A process that cannot start because of a full disk would free no space by restarting.
    if (others.length > 0) this.#writer.noteAnyway({ t: 'died-beside', ns: items.map(({ n }) => n) });
    else {
      this.#writer.noteAnyway({ t: 'died', n: item.n });
      if (item.deaths >= 2) this.#writer.noteAnyway({ t: 'result', result: poisoned(item) });
    }
    this.#writer.syncSoon();
    return items;
  }

  /** Records were lost to a damaged file. */
  recordDamage(): void {
    this.#writer.noteAnyway({ t: 'damaged' });
    this.#writer.syncSoon();
  }

  /** No request follows: failed first tries are final, and held failures. Other held results get no outcome. */
  stopCrawling(): void {
    this.#closing = true;
    const records: JournalRecord[] = [];
    for (const { state, first, held } of this.state.items.in('postponed', 'held')) {
      if (state === 'postponed' && first) records.push({ t: 'result', result: first });
      if (state === 'held' && held?.outcome === 'failed') records.push({ t: 'result', result: held });
    }
    if (records.length > 0) this.note(...records);
  }

  /** Cuts the next part from the oldest results: at most `limit` and `maxChars`, but at least one. Synced. */
  async cut(limit: number, maxChars = Infinity): Promise<Cut | null> {
    const { from, to } = this.state.lines.uncut();
    if (from === to) return null;
    const last = this.state.lines.lastWithin(Math.min(to, from + limit), maxChars);
    const cut: Cut = { seq: this.state.nextSeq, from, to: last };
    this.#writer.note({ t: 'cut', ...cut });
    await this.#writer.sync();
    return cut;
  }

  /** Cuts the next object of the request log; false when nothing has happened since the last one. Synced. */
  async cutRequests(): Promise<boolean> {
    const { requestLog } = this.state;
    if (!requestLog.isCuttable) return false;
    this.#writer.note({ t: 'log-cut', seq: requestLog.nextSeq });
    await this.#writer.sync();
    return true;
  }

  /**
   * The main server's clock as a reply has just shown it: kept once a minute, and where it is much surer than the last.
   */
  noteClock(serverMs: number, roundTripMs: number): void {
    const reading = { localMs: this.localMs - roundTripMs / 2, serverMs, roundTripMs };
    const last = this.#reading;
    const isDue = last === null || reading.localMs - last.localMs >= CLOCK_READ_MS;
    if (!isDue && roundTripMs > last.roundTripMs / 2) return;
    this.#reading = reading;
    this.#tell({ t: 'clock', ...reading });
  }

  async recordManifest(text: string): Promise<void> {
    this.#writer.note({ t: 'manifest', text });
    await this.#writer.sync();
  }

  /** Uploaded parts that the main server has not confirmed, oldest first. */
  unackedParts(limit: number): PartRef[] {
    return this.state.parts.filter((part) => part.seq > this.state.ackedSeq).slice(0, limit);
  }

  progress(pageMs: number | null, uploadMs: number | null = null): Progress {
    const { items, domains, counts, requests, rendered, canaries } = this.state;
    // Of many hosts each is up or down, and wants a pause, by itself: this instance rests when all of them do.
    const isOneSite = this.#defaults.leaseMs === undefined;
    const okAtMs = isOneSite ? domains.okAtMs : domains.lastOkAtMs;
    const pausedUntilMs = isOneSite ? domains.pausedUntilMs : domains.restUntilMs(items.openDomains());
    const { tried, unavailable, served, replies } = this.tally;
    const okAgoMs = okAtMs === null ? null : Math.max(0, this.#clock.now() - okAtMs);
    const misses = this.state.misses.list();
    const sinceBans = templatesOf(this.#defaults.productUrl).flatMap((_, domain) => this.#sinceBan(domain) ?? []);
    return {
      assigned: items.assigned,
      pending: items.openCount,
      ...counts,
      requests,
      minGapMs: domains.minGapMs,
      pageMs,
      uploadMs,
      rendered,
      canaries,
      okAgoMs,
      tried,
      unavailable,
      served,
      restMs: Math.max(0, pausedUntilMs - this.#clock.now()),
      ...(sinceBans.length === 0 ? {} : { sinceBan: Math.min(...sinceBans) }),
      replies: { ...replies },
      ...(misses.length === 0 ? {} : { misses }),
    };
  }

  /** Writes what has happened; throws only when the reserve of the disk is used up, too. */
  note(...records: JournalRecord[]): void {
    this.#writer.note(...records);
    this.#writer.syncSoon();
  }
}

/** Clocks of machines that are set by NTP drift by some milliseconds in that time. */
const CLOCK_READ_MS = 60_000;

/** The status of a reply, or why there was none. */
export function answerOf(page: PageAnswer): string {
  if (page.kind === 'not-now') return 'aborted';
  return String(page.reply?.status ?? (page.kind === 'failed' ? page.reason : 'none'));
}

class SiteTally {
  tried = 0;
  /** How many of those got a server error, a time-out or no connection. */
  unavailable = 0;
  /** Pages that were judged right, gone or unchanged. */
  served = 0;
  /** How many of `tried` got which status, or why there was no reply. */
  readonly replies: Record<string, number> = {};

  /** @param isDown whether it says that the site is down */
  noteTry(page: PageResult, isDown = isUnavailable(page)): void {
    this.#note(answerOf(page), isDown);
  }

  /** One of many hosts has not answered. @param isDown no host does: their silence is that of this machine's network */
  noteSilence(isDown: boolean): void {
    this.#note('network', isDown);
  }

  #note(reply: string, isDown: boolean): void {
    this.tried++;
    this.replies[reply] = (this.replies[reply] ?? 0) + 1;
    if (isDown) this.unavailable++;
  }

  noteJudgement(kind: JudgementKind): void {
    if (kind === 'right' || kind === 'gone' || kind === 'unchanged') this.served++;
  }
}

function isUnavailable(page: PageResult): boolean {
  if (page.kind !== 'failed') return false;
  return page.reason === 'network' || page.reason === 'timeout' || (page.reply?.status ?? 0) >= 500;
}
