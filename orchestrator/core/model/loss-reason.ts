/** Why an instance was given up: stored in its row, shown by `explain` and the report. */
export const LOSS_REASON = {
  noHello: 'no-hello',
  silent: 'heartbeat-lost',
  overdue: 'overdue',
  refused: 'launch-refused',
  unanswered: 'launch-unanswered',
  /** EC2 reports that the client token has already launched an instance, and none shows under its tags. */
  tokenUsed: 'launch-token-used',
  /** EC2 refused its pool to other slots before this one was launched. */
  poolDry: 'pool-dry',
  notNeeded: 'not-needed',
  banned: 'banned',
  /** Its address was rotated, as `aws.recycle_every` asks. */
  rotated: 'address-rotated',
  /** It said hello, but the balancer never found it healthy while others were. */
  neverHealthy: 'never-healthy',
  /** Its requests leave from the address of another instance of the run. */
  sharedAddress: 'shared-address',
  /** It did its work, but what it uploaded cannot be read. */
  unreadable: 'results-unreadable',
} as const;
