/** What the control core works with: ports, and the number under which this main server holds the lock. */
import type { Logger } from 'pino';
import type { Clock } from '../../shared/ports/clock.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Random } from '../../shared/ports/random.ts';
import type { Compute } from '../cloud/compute.ts';
import type { LoadBalancer } from '../cloud/load-balancer.ts';
import type { OfferSender } from './dispatch.ts';
import type { LaunchKit } from './launch.ts';
import type { FleetStore, ResultStore, RunStore, WorkStore } from './stores.ts';

export interface Core {
  runId: string;
  fence: number;
  clock: Clock;
  random: Random;
  log: Logger;
  runs: RunStore;
  fleet: FleetStore;
  work: WorkStore;
  results: ResultStore;
  compute: Compute;
  balancers: LoadBalancer;
  objects: ObjectStore;
  offers: OfferSender;
  /** Resolves when RunInstances may be called: AWS lets 5 through at once, then 2 a second. */
  launchTurn(): Promise<void>;
  /** What every launch needs, prepared on first use. */
  launchKit(): Promise<LaunchKit>;
  /** Ends an alarm's silence: written as an event and to the log. */
  alarm(detail: string, at?: { slot: number; epoch: number }): Promise<void>;
  /** Runs loads one after the other: two at once would only wait for each other's rows. */
  oneAtATime: <T>(work: () => Promise<T>) => Promise<T>;
  /** Marks of time for the report. */
  marks: Marks;
}

/** When things happened, in the clock's wall milliseconds; null when this main server did not see it. */
export interface Marks {
  firstLaunchMs: number | null;
  lastLaunchMs: number | null;
  firstOfferMs: number | null;
  lastGrantMs: number | null;
  firstReadyMs: number | null;
  crawlEndMs: number | null;
  loadMs: number;
  publishMs: number | null;
}

export const noMarks = (): Marks => ({
  firstLaunchMs: null,
  lastLaunchMs: null,
  firstOfferMs: null,
  lastGrantMs: null,
  firstReadyMs: null,
  crawlEndMs: null,
  loadMs: 0,
  publishMs: null,
});

/** A queue of one: each piece of work starts when the one before it has ended, well or badly. */
export function createQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
}
