/** Offers through the balancer, as control/sharing/dispatch.ts makes them: round robin, until all is out or everybody refuses. */
import { drainAtMs } from '../control/model/run-deadlines.ts';
import type { Machine } from './machine.ts';
import type { SimState } from './state.ts';
import { setTimer } from './state.ts';

/** As the real dispatcher: refusals beyond one round of all targets, and the rest after a round that everybody refused. */
const EXTRA_REFUSALS = 8;
const REST_MS = 250;

export class Dispatching {
  #next = 0;
  #fruitless = 0;
  #restUntilMs = -Infinity;
  /** For what the last round was: with another share or other targets there is no rest. */
  #lastLimit = -1;
  #lastTargets: unknown = null;

  /** When the next round may be; at once when the share or the targets have changed. */
  dueMs(limitChunks: number, targets: unknown): number {
    return limitChunks === this.#lastLimit && targets === this.#lastTargets ? this.#restUntilMs : -Infinity;
  }

  offer(state: SimState, limitChunks: number): void {
    const { work, nowMs, world } = state;
    const share = limitChunks * world.run.plan.chunkSize;
    const targets = healthyTargets(state);
    const takers = new Set<Machine>();
    let refusals = 0;
    const patience = world.targets.size + EXTRA_REFUSALS;
    while (targets.length > 0 && refusals < patience) {
      const chunk = work.firstFree();
      if (chunk === null) break;
      const machine = targets[this.#next++ % targets.length]!;
      const products = chunk.last - chunk.next + 1;
      if (!machine.takes(products, share, world.run.settings.site.intervalMs, drainAtMs(world.run) - nowMs, nowMs)) {
        refusals++;
        continue;
      }
      refusals = 0;
      machine.hold(work.takeFirst());
      takers.add(machine);
    }
    for (const machine of takers) setTimer(state, machine, 'beat', nowMs + state.scenario.outside.roundTripMs);
    this.#fruitless = takers.size === 0 ? this.#fruitless + 1 : 0;
    const restMs = Math.min(world.limits.heartbeatMs, REST_MS * 2 ** Math.max(0, this.#fruitless - 1));
    this.#restUntilMs = nowMs + restMs;
    this.#lastLimit = limitChunks;
    this.#lastTargets = world.targets;
  }
}

/** Those that the balancer sends to now; what the main server last saw of them does not matter. */
function healthyTargets({ machines, nowMs, balancerReadyMs }: SimState): Machine[] {
  if (nowMs < balancerReadyMs) return [];
  return machines.filter((m) => m.record.registered && nowMs >= m.healthyAtMs && m.isUp(nowMs) && !m.isBanned(nowMs));
}
