/** The history of a run that is over, as far as the database has it: for runs in the sandbox and on AWS. */
import type { Clock } from '../../../shared/ports/clock.ts';
import type { RunReader } from '../../../orchestrator/core/model/stores.ts';
import type { VerifyFacts } from '../../../orchestrator/core/verify/verify-facts.ts';
import type { History, SeenMachine } from './history.ts';

const EVENTS = 100_000;

/** `seen` adds outside observations: machines, requests at the shop. Throws when there is no such run. */
export async function readHistory(
  rows: RunReader & { clock: Pick<Clock, 'now'> },
  facts: VerifyFacts,
  seen: Partial<History> = {},
): Promise<History> {
  const [run, instances, parts, events, totals, leftOut] = await Promise.all([
    rows.run.get(),
    rows.fleet.instances(),
    rows.results.parts(),
    rows.run.events(EVENTS),
    rows.results.totals(),
    rows.results.leftOut(),
  ]);
  if (!run) throw new Error('there is no such run');
  const machines = instances
    .filter((i) => i.instanceId !== null)
    .map((i): SeenMachine => ({
      id: i.instanceId!,
      slot: i.slot,
      epoch: i.epoch,
      fromMs: i.launchedAtMs ?? i.claimedAtMs,
      toMs: i.terminatedAtMs,
      terminated: i.terminatedAtMs !== null,
    }));
  return {
    run,
    partial: { products: totals.partial ?? 0, leftOut: Object.values(leftOut).map(({ products }) => products) },
    facts,
    instances,
    parts,
    events: events.toReversed(),
    nowMs: rows.clock.now(),
    outageMs: 0,
    abandoned: false,
    gcUntilMs: null,
    machines,
    requests: null,
    hostRequests: null,
    hostWishes: null,
    grants: null,
    intruders: null,
    writes: null,
    products: null,
    objects: null,
    frontier: null,
    texts: null,
    secrets: null,
    ...seen,
  };
}
