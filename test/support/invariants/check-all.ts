/** All invariants over one history. I13 has no checker of its own: after a kill and a restart the others hold. */
import { checkLaunches, checkLeftovers, checkSpend, checkWaits } from './fleet.ts';
import { checkLinks } from './frontier.ts';
import { checkHosts } from './hosts.ts';
import type { History, Invariant, Violation } from './history.ts';
import { checkLeases, checkOutcomes, checkPartial, checkResults, checkRows } from './products.ts';
import { checkDeadline, checkPoliteness, checkIntruders, checkSecrets } from './time.ts';

const INVARIANTS: Record<Violation['invariant'], Invariant> = {
  I1: checkOutcomes,
  I2: checkLeftovers,
  I3: checkRows,
  I4: checkDeadline,
  I5: checkSpend,
  I6: checkPoliteness,
  I7: checkLaunches,
  I8: checkResults,
  I9: checkIntruders,
  I10: checkLeases,
  I11: checkWaits,
  I12: checkSecrets,
  I14: checkLinks,
  I15: checkPartial,
  I16: checkHosts,
};

/** Empty when all of them hold. */
export function checkInvariants(history: History): Violation[] {
  return Object.values(INVARIANTS).flatMap((invariant) => invariant(history));
}
