/**
 * The proof of the pace: the request logs of all instances, and the gaps in them by address and domain; with many hosts
 * by host, over all instances.
 */
import { isAnyHost, templatesOf } from '../../../shared/domain/domains.ts';
import { plural } from '../plan/wording.ts';
import type { ClosedEpoch, RunBucket } from './closed-epoch.ts';
import { type Difference, differs } from './difference.ts';
import { type Gap, Gaps } from './gaps.ts';
import { HostNumbers } from './host-numbers.ts';
import { type Handover, Owners } from './owners.ts';
import { readRequestLogs } from './request-logs.ts';

/** What the request logs show. */
export interface RequestProof {
  logs: number;
  /** Requests in the logs. */
  logged: number;
  /** Requests that instances have counted and no log has: these gaps are not proved. */
  unlogged: number;
  /** With many hosts: those that were asked. */
  hosts?: number;
  /** The shortest time between two requests of an address at one domain, or to one of many hosts; null without two. */
  smallestGapMs: number | null;
  /** The clocks of different processes were compared to within this, at worst; null where none had to be. */
  clocksMs: number | null;
}

export interface RequestCheck {
  proof: RequestProof;
  differences: Difference[];
  notes: string[];
}

const EXAMPLES = 20;

export async function checkRequests(bucket: RunBucket, epochs: readonly ClosedEpoch[]): Promise<RequestCheck> {
  const check = new Check(bucket);
  const inOrder = [...epochs].sort((a, b) => a.instance.claimedAtMs - b.instance.claimedAtMs);
  if (isAnyHost(bucket.run.settings.site.productUrl)) await check.readHosts(inOrder);
  else for (const ofAddress of byAddress(inOrder)) await check.readAddress(ofAddress);
  return check.result();
}

/** The epochs of each address. */
function byAddress(epochs: readonly ClosedEpoch[]): Iterable<ClosedEpoch[]> {
  const all = new Map<string, ClosedEpoch[]>();
  for (const epoch of epochs) {
    const { address, slot, epoch: number } = epoch.instance;
    // A rebuilt run does not know the addresses.
    const name = address === null || address === '-' ? `${slot}.${number}` : address;
    all.set(name, [...(all.get(name) ?? []), epoch]);
  }
  return all.values();
}

const nameOf = ({ instance: { slot, epoch } }: ClosedEpoch): string => `slot ${slot} epoch ${epoch}`;

class Check {
  readonly #bucket: RunBucket;
  readonly #proof: RequestProof = { logs: 0, logged: 0, unlogged: 0, smallestGapMs: null, clocksMs: null };
  readonly #damaged: string[] = [];
  readonly #miscounted: string[] = [];
  readonly #quick = { count: 0, examples: [] as string[] };
  readonly #twoOwners = { count: 0, examples: [] as string[] };
  #quickest: Gap | null = null;
  /** Gaps that the uncertainty of the clocks leaves open. */
  #open = 0;
  #foreign = 0;
  /** Epochs with requests that are in no log, by who has closed them. */
  readonly #withoutLog = { instance: 0, 'main-server': 0 };

  constructor(bucket: RunBucket) {
    this.#bucket = bucket;
  }

  async readAddress(epochs: readonly ClosedEpoch[]): Promise<void> {
    let at = '';
    const { intervalMs: floorMs, productUrl } = this.#bucket.run.settings.site;
    const domains = templatesOf(productUrl).length;
    const gaps = new Gaps({ floorMs, domains }, (gap) => this.#note(gap, at));
    for (const epoch of epochs) {
      at = nameOf(epoch);
      gaps.beginInstance();
      await this.#readEpoch(epoch, gaps, at);
    }
    gaps.end();
  }

  /** Each host's pace counts over all addresses, so each epoch is read by itself, and then they are compared. */
  async readHosts(epochs: readonly ClosedEpoch[]): Promise<void> {
    const { intervalMs: floorMs, hostKey } = this.#bucket.run.settings.site;
    const hosts = new HostNumbers(hostKey);
    const { numberOf } = hosts;
    const owners = new Owners(hosts);
    for (const epoch of epochs) {
      const at = nameOf(epoch);
      const gaps = new Gaps({ floorMs, domains: Infinity, numberOf }, (gap) => this.#note(gap, at));
      gaps.beginInstance();
      await this.#readEpoch(epoch, gaps, at);
      gaps.end();
      owners.add(at, gaps.spans());
    }
    for (const handover of owners.handovers()) this.#noteHandover(handover);
    this.#proof.hosts = hosts.count;
  }

  async #readEpoch(epoch: ClosedEpoch, gaps: Gaps, at: string): Promise<void> {
    const { closedBy, requests, damaged } = epoch;
    const found = await readRequestLogs(this.#bucket, epoch, gaps);
    const { logged } = found;
    const whole = found.damaged.length === 0;
    this.#proof.logs += found.logs;
    this.#proof.logged += logged;
    this.#foreign += found.foreign;
    this.#damaged.push(...found.damaged);
    const isExact = closedBy === 'instance' && epoch.requestLogs !== undefined && !damaged;
    if (isExact && whole && logged !== requests) this.#miscounted.push(`${at}: ${requests} sent, ${logged} in the log`);
    else if (logged < requests) {
      this.#proof.unlogged += requests - logged;
      this.#withoutLog[closedBy]++;
    }
  }

  #noteHandover(handover: Handover): void {
    const { host, from, to, ms, offMs } = handover;
    if (ms + offMs >= 0) return this.#note(handover, `${to} after ${from}`);
    this.#noteClocks(offMs);
    this.#twoOwners.count++;
    if (this.#twoOwners.examples.length >= EXAMPLES) return;
    const early = `${Math.round(-ms)} ± ${Math.ceil(offMs)} ms before the last request of ${from}`;
    this.#twoOwners.examples.push(`${host}: ${to} asked it ${early}, ${new Date(handover.atMs).toISOString()}`);
  }

  #noteClocks(offMs: number): void {
    const proof = this.#proof;
    if (offMs > 0 && Number.isFinite(offMs)) proof.clocksMs = Math.max(proof.clocksMs ?? 0, Math.ceil(offMs));
  }

  #note(gap: Gap, at: string): void {
    this.#noteClocks(gap.offMs);
    const isShort = gap.ms < gap.intervalMs;
    if (gap.ms + gap.offMs < gap.intervalMs) {
      this.#quick.count++;
      if (this.#quick.examples.length < EXAMPLES) this.#quick.examples.push(describeGap(gap, at));
    } else if (isShort || gap.ms - gap.offMs < gap.intervalMs) this.#open++;
    if (!Number.isFinite(gap.offMs) || (this.#quickest !== null && gap.ms >= this.#quickest.ms)) return;
    this.#quickest = gap;
    this.#proof.smallestGapMs = Math.round(gap.ms);
  }

  result(): RequestCheck {
    const { unlogged } = this.#proof;
    const differences: Difference[] = [];
    const expect = (check: string, expected: string, examples: readonly string[], found: string): void => {
      if (examples.length > 0) differences.push(differs(check, expected, found, examples.slice(0, EXAMPLES)));
    };
    const { count, examples } = this.#quick;
    const damaged = `${this.#damaged.length} that cannot be read`;
    expect('every request log of a manifest is whole', 'no exception', this.#damaged, damaged);
    const off = `${this.#miscounted.length} instances with another number`;
    expect('every request is in a request log', 'no exception', this.#miscounted, off);
    const whose = this.#proof.hosts === undefined ? 'an address' : 'a host';
    expect(`no gap of ${whose} is under the interval`, 'no exception', examples, `${count} shorter ones`);
    const twice = `${plural(this.#twoOwners.count, 'time')} two owners`;
    expect('each host has one owner at a time', 'no exception', this.#twoOwners.examples, twice);
    const { instance, 'main-server': lost } = this.#withoutLog;
    const notes = [
      ...(unlogged > 0
        ? [
            `not proved: ${plural(unlogged, 'request')} in no request log, of ${plural(lost, 'lost instance')} since ` +
              `their last one and of ${plural(instance, 'instance')} of an earlier version or with a damaged disk`,
          ]
        : []),
      ...(this.#open > 0
        ? [`not proved: ${plural(this.#open, 'gap')} between two processes whose clocks are not known well enough`]
        : []),
      ...(this.#foreign > 0
        ? [`ignored: ${plural(this.#foreign, 'object')} named as a request log and not signed by the instance`]
        : []),
    ];
    return { proof: this.#proof, differences, notes };
  }
}

function describeGap({ ms, offMs, intervalMs, host, atMs }: Gap, at: string): string {
  const about = offMs === 0 ? '' : ` ± ${Math.ceil(offMs)}`;
  const when = new Date(atMs).toISOString();
  return `${at}: ${Math.round(ms)}${about} ms at ${host}, ${when}; at least ${intervalMs} ms are due`;
}
