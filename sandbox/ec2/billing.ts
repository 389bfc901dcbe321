/** What AWS would charge for: each start of an instance by the second, at least a minute, for as long as it runs. */
import type { Instance } from './instance.ts';

/** AWS's least charge for one start. */
const MIN_BILLED_S = 60;

/** One instance on the bill; it stays there when EC2 has forgotten the instance. */
export interface BillLine {
  id: string;
  instanceType: string;
  zone: string;
  /** How often it came to run. */
  starts: number;
  /** How long it has run, all starts together. */
  runningMs: number;
  /** What is charged: for each start whole seconds, at least 60. */
  billedSeconds: number;
  /** Seconds for which a public IPv4 address is charged. */
  addressSeconds: number;
}

interface Account {
  about: Pick<BillLine, 'id' | 'instanceType' | 'zone'>;
  hasAddress: boolean;
  /** Length of each start that is over. */
  overMs: number[];
  runningSinceMs: number | null;
}

export class BillingLedger {
  readonly #accounts = new Map<string, Account>();

  started({ id, instanceType, zone, publicAddress }: Instance, nowMs: number): void {
    const account = this.#accounts.get(id) ?? {
      about: { id, instanceType, zone },
      hasAddress: publicAddress,
      overMs: [],
      runningSinceMs: null,
    };
    account.runningSinceMs ??= nowMs;
    this.#accounts.set(id, account);
  }

  /** Nothing for an instance that was not running. */
  ended(id: string, nowMs: number): void {
    const account = this.#accounts.get(id);
    if (!account || account.runningSinceMs === null) return;
    account.overMs.push(nowMs - account.runningSinceMs);
    account.runningSinceMs = null;
  }

  /** Every instance that ever ran, in order of its first start. */
  lines(nowMs: number): BillLine[] {
    return [...this.#accounts.values()].map(({ about, hasAddress, overMs, runningSinceMs }) => {
      const starts = runningSinceMs === null ? overMs : [...overMs, nowMs - runningSinceMs];
      const sum = (of: (ms: number) => number): number => starts.reduce((total, ms) => total + of(ms), 0);
      return {
        ...about,
        starts: starts.length,
        runningMs: sum((ms) => ms),
        billedSeconds: sum((ms) => Math.max(MIN_BILLED_S, Math.ceil(ms / 1_000))),
        addressSeconds: hasAddress ? sum((ms) => Math.ceil(ms / 1_000)) : 0,
      };
    });
  }
}
