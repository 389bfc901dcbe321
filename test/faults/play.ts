/** Plays one plan and returns the invariants it broke. */
import { seededRandom } from '../../shared/adapters/random.ts';
import { describeError } from '../../shared/domain/errors.ts';
import type { Violation } from '../support/invariants/history.ts';
import { checkInvariants } from '../support/invariants/check-all.ts';
import { BUGS } from './bugs.ts';
import { Dice, FAULTS } from './catalogue.ts';
import { FaultWorld } from './fault-world.ts';
import { type FaultPlan, formatPlan, shapeOf } from './plan.ts';

export interface Played {
  line: string;
  violations: Violation[];
  /** How the run ended: its phase and exit code. */
  end: string;
  /** Calls of the main servers that change something. */
  effects: string[];
  virtualMs: number;
}

/** `bug`: the name of a switch that is on. */
export async function play(plan: FaultPlan, bug: string | null = null): Promise<Played> {
  const world = new FaultWorld(shapeOf(plan.seed), bug === null ? {} : BUGS[bug]!.wrongs);
  world.crash = plan.crash;
  for (const [i, { name, moment, afterMs }] of plan.faults.entries()) {
    const dice = new Dice(seededRandom(plan.seed * 31 + i));
    world.on(moment, () => {
      // Before the first step of the run, or never in the middle of what triggered the moment.
      if (moment === 'P' && afterMs === 0) FAULTS[name]!.act(world, dice);
      else world.later(Math.max(1, afterMs), () => FAULTS[name]!.act(world, dice));
    });
  }
  const line = formatPlan(plan);
  const startMs = world.clock.now();
  const played = (end: string, violations: Violation[]): Played => {
    return { line, effects: world.effects, violations, end, virtualMs: world.clock.now() - startMs };
  };
  try {
    await world.play();
    const history = await world.history();
    const { phase, exitCode } = history.run;
    return played(`${phase} ${exitCode ?? '-'}`, checkInvariants(history));
  } catch (error) {
    return played('broken', [{ invariant: 'I11', sentence: `the run broke: ${describeError(error)}` }]);
  }
}
