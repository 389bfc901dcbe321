/** Plays one plan and returns the invariants it broke. */
import { seededRandom } from '../../shared/adapters/random.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { History, Violation } from '../support/invariants/history.ts';
import { isRunEnd } from '../../shared/domain/states.ts';
import { START_MS } from '../../orchestrator/core/simulation/world.ts';
import type { RunShape } from '../contract/core/run-stage.ts';
import { checkInvariants } from '../support/invariants/check-all.ts';
import { checkNights } from '../support/invariants/frontier.ts';
import { BUGS } from './bugs.ts';
import { FAULTS } from './catalogue.ts';
import { Dice } from './dice.ts';
import { DiscoveryDatabase } from './discovery-database.ts';
import { type Discovery, FaultWorld, type Wrongs } from './fault-world.ts';
import { hostsOf } from './hosts.ts';
import { LinkedSite } from './linked-site.ts';
import { type FaultPlan, formatPlan, shapeOf } from './plan.ts';

export interface Played {
  line: string;
  violations: Violation[];
  /** How the run ended: its phase and exit code. */
  end: string;
  /** The faults that have struck. */
  struck: readonly string[];
  /** Calls of the main servers that change something. */
  effects: string[];
  virtualMs: number;
}

/** `bug`: the name of a switch that is on. */
export async function play(plan: FaultPlan, bug: string | null = null): Promise<Played> {
  const shape = shapeOf(plan.seed);
  const site = plan.discovery ? new LinkedSite(plan.seed, shape.products) : null;
  const database = site && (await DiscoveryDatabase.open(site));
  const wrongs: Wrongs = bug === null ? {} : BUGS[bug]!.wrongs;
  const night = database && (await beginNight(database));
  const hosts = plan.hosts ? hostsOf(plan.seed, shape) : null;
  const world = new FaultWorld(shape, wrongs, { discovery: night, hosts });
  world.crash = plan.crash;
  for (const [i, { name, moment, afterMs }] of plan.faults.entries()) {
    const dice = new Dice(seededRandom(plan.seed * 31 + i));
    const strike = (): void => {
      world.struck.push(name);
      FAULTS[name]!.act(world, dice);
    };
    world.on(moment, () => {
      // Before the first step of the run, or never in the middle of what triggered the moment.
      if (moment === 'P' && afterMs === 0) strike();
      else world.later(Math.max(1, afterMs), strike);
    });
  }
  const line = formatPlan(plan);
  const startMs = world.clock.now();
  const played = (end: string, violations: Violation[]): Played => {
    return {
      line,
      struck: world.struck,
      effects: world.effects,
      violations,
      end,
      virtualMs: world.clock.now() - startMs,
    };
  };
  try {
    await world.play();
    const history = await world.history();
    const { phase, exitCode } = history.run;
    const violations = checkInvariants(history);
    // A run that has not ended keeps what it has taken.
    if (database && isRunEnd(phase)) {
      await wrongs.betweenNights?.(database);
      violations.push(...(await playNextNight(database, shape, history)));
    }
    return played(`${phase} ${exitCode ?? '-'}`, violations);
  } catch (error) {
    return played('broken', [{ invariant: 'I11', sentence: `the run broke: ${describeError(error)}` }]);
  } finally {
    await database?.close();
  }
}

/** The night after it, which nothing disturbs. */
async function playNextNight(database: DiscoveryDatabase, shape: RunShape, first: History): Promise<Violation[]> {
  const night = await beginNight(database);
  const world = new FaultWorld(shape, {}, { discovery: night, hosts: null });
  await world.play();
  const second = await world.history();
  return [...checkInvariants(second), ...checkNights({ first, second, isNewRound: night.isNewRound })];
}

async function beginNight(database: DiscoveryDatabase): Promise<Discovery & { isNewRound: boolean }> {
  return { database, ...(await database.beginNight(START_MS)) };
}
