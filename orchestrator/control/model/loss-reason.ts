/** Why an instance was given up: these stand in its row; `explain` and the report show them. */
export const LOSS_REASON = {
  noHello: 'no-hello',
  silent: 'heartbeat-lost',
  overdue: 'overdue',
  refused: 'launch-refused',
  unanswered: 'launch-unanswered',
  /** EC2 says that the client token has launched something already, and nothing shows under its tags. */
  tokenUsed: 'launch-token-used',
  /** Its pool had no machine for others, before EC2 was asked for this one. */
  poolDry: 'pool-dry',
  notNeeded: 'not-needed',
  banned: 'banned',
  /** It has made room for a fresh address, as `aws.recycle_every` asks. */
  rotated: 'address-rotated',
  /** It said hello, but the balancer never got a good answer from it while others were fine. */
  neverHealthy: 'never-healthy',
  /** Its requests leave from the address of another instance of the run. */
  sharedAddress: 'shared-address',
  /** It did its work, but what it uploaded cannot be read. */
  unreadable: 'results-unreadable',
} as const;
