/** What AWS would charge: each start of an instance per second, with a minimum of a minute, for as long as it runs. */
import type { Instance } from './instance.ts';

/** AWS's minimum charge per start. */
const MIN_BILLED_S = 60;

/** One instance on the bill; it stays there after EC2 has forgotten the instance. */
export interface BillLine {
  id: string;
  instanceType: string;
  zone: string;
  /** Number of starts. */
  starts: number;
  /** Total running time of all starts. */
  runningMs: number;
  /** Charged seconds: per start whole seconds, at least 60. */
  billedSeconds: number;
  /** Seconds for which a public IPv4 address is charged. */
  addressSeconds: number;
}

interface Account {
  about: Pick<BillLine, 'id' | 'instanceType' | 'zone'>;
  hasAddress: boolean;
  /** Length of each finished start. */
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

  /** No effect for an instance that was not running. */
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
