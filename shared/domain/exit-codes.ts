/** Exit code per cause. Scripts rely on them, so a number never changes its meaning. */

export const EXIT = {
  complete: 0,
  internal: 1,
  usage: 2,
  config: 4,
  interrupted: 11,
  failedProducts: 12,
  held: 13,
  budget: 14,
  deadline: 15,
  infeasible: 16,
  banned: 18,
  capacity: 19,
  locked: 20,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
