/** ELBv2's words in ours. */
import type { Action } from '@aws-sdk/client-elastic-load-balancing-v2';
import type { TargetHealth } from './load-balancer.ts';

/** Whether a listener's action sends to this target group, in either of the two forms ELBv2 has for it. */
export const forwardsTo = (action: Action, arn: string): boolean =>
  action.TargetGroupArn === arn || (action.ForwardConfig?.TargetGroups ?? []).some((g) => g.TargetGroupArn === arn);

export const toTags = (tags: Record<string, string>) => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));

/** `unhealthy.draining` and whatever ELBv2 adds later are folded into the states the port knows. */
export function toHealth(state: string | undefined): TargetHealth {
  switch (state) {
    case 'initial':
    case 'healthy':
    case 'unhealthy':
    case 'draining':
    case 'unused':
    case 'unavailable':
      return state;
    case 'unhealthy.draining':
      return 'draining';
    default:
      return 'unavailable';
  }
}
