/** What has become of the hosts of a run, counted record by record. Times are milliseconds. */
import { hostGapMs } from '../../../shared/domain/host-policy.ts';
import type { FailureReason, Outcome } from '../../../shared/domain/outcome.ts';

/** Each host is in one of the three. */
export interface HostCounts {
  /** Hosts whose records all have an outcome, and of at least one of them it is stored or gone. */
  done: number;
  /** Hosts whose records have all failed, by the reason of most of them. */
  givenUp: Partial<Record<FailureReason, number>>;
  /** Hosts with a record that has no outcome. */
  open: number;
}

export interface RunHosts extends HostCounts {
  /** Open hosts that are not to be asked before some time, and the last of these times; null: none rests. */
  resting: { hosts: number; untilMs: number } | null;
  /** Open hosts with most to do at their pace, the longest first. */
  longest: OpenHost[];
}

interface OpenHost {
  host: string;
  /** Records without an outcome. */
  open: number;
  /** From one request to the next. */
  gapMs: number;
  /** When the last of them has been asked for, if the host is asked from now on, or once it has rested. */
  untilMs: number;
}

/** How the pace of open hosts is known, and how many of them are listed. */
export interface HostsAsker {
  nowMs: number;
  /** The interval of the run. */
  intervalMs: number;
  /** Hosts in `longest`. */
  most: number;
}

/** `4120 = 3700 done + 420 given up (network 400, robots 20)`, with those that are open while there are any. */
export function hostsInWords({ done, givenUp, open }: HostCounts): string {
  const reasons = Object.entries(givenUp).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const lost = reasons.reduce((sum, [, hosts]) => sum + hosts, 0);
  const why = lost === 0 ? '' : ` (${reasons.map(([reason, hosts]) => `${reason} ${hosts}`).join(', ')})`;
  return `${done + lost + open} = ${done} done + ${lost} given up${why}${open === 0 ? '' : ` + ${open} open`}`;
}

/** What is stored of a host, as far as it decides when the host is asked; null: nothing. */
interface KnownPace {
  host: string;
  delayMs: number | null;
  paceMs: number | null;
  notBeforeMs: number | null;
}

/** Records of a host. */
interface Tally {
  open: number;
  /** Stored or gone. */
  right: number;
  failed: Partial<Record<FailureReason, number>> | null;
}

/** Memory: some numbers for each host. */
export class HostTally {
  readonly #hosts = new Map<string, Tally>();

  /** @param host null for a record without a URL to request, which is at no host */
  add(host: string | null, outcome: Outcome | null, reason: FailureReason | null): void {
    if (host === null) return;
    let tally = this.#hosts.get(host);
    if (tally === undefined) this.#hosts.set(host, (tally = { open: 0, right: 0, failed: null }));
    if (outcome === null) tally.open++;
    else if (outcome !== 'failed') tally.right++;
    else if (reason !== null) {
      tally.failed ??= {};
      tally.failed[reason] = (tally.failed[reason] ?? 0) + 1;
    }
  }

  openHosts(): string[] {
    return [...this.#hosts].filter(([, { open }]) => open > 0).map(([host]) => host);
  }

  /** @param notes what is stored of open hosts */
  result(notes: readonly KnownPace[], { nowMs, intervalMs, most }: HostsAsker): RunHosts {
    const result: RunHosts = { done: 0, givenUp: {}, open: 0, resting: null, longest: [] };
    const noted = new Map(notes.map((note) => [note.host, note]));
    const openHosts: OpenHost[] = [];
    for (const [host, { open, right, failed }] of this.#hosts) {
      if (open > 0) {
        result.open++;
        const { delayMs, paceMs, notBeforeMs } = noted.get(host) ?? {};
        const gapMs = Math.ceil(hostGapMs(intervalMs, Math.max(delayMs ?? 0, paceMs ?? 0)));
        const fromMs = Math.max(nowMs, notBeforeMs ?? 0);
        openHosts.push({ host, open, gapMs, untilMs: fromMs + (open - 1) * gapMs });
        if (fromMs > nowMs)
          result.resting = {
            hosts: (result.resting?.hosts ?? 0) + 1,
            untilMs: Math.max(result.resting?.untilMs ?? 0, fromMs),
          };
      } else if (right > 0 || failed === null) result.done++;
      else {
        const reason = mostOf(failed);
        result.givenUp[reason] = (result.givenUp[reason] ?? 0) + 1;
      }
    }
    openHosts.sort((a, b) => b.untilMs - a.untilMs || (a.host < b.host ? -1 : 1));
    return { ...result, longest: openHosts.slice(0, most) };
  }
}

/** Of equals the one that comes first in the alphabet, so that the order of records does not matter. */
function mostOf(failed: Partial<Record<FailureReason, number>>): FailureReason {
  const reasons = Object.entries(failed) as [FailureReason, number][];
  const [[reason] = ['network' as const]] = reasons.sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return reason;
}
