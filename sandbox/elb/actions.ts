/** ELBv2's calls by name. */
import type { QueryAction, Params } from '../query-protocol.ts';
import * as balancers from './load-balancer-actions.ts';
import type { ElbContext } from './registry.ts';
import * as tags from './tag-actions.ts';
import * as groups from './target-group-actions.ts';
import type { XmlNode } from '../xml.ts';
import { renderAttributes } from './render.ts';

export function createElbActions(context: ElbContext): Map<string, QueryAction> {
  return new Map<string, QueryAction>([
    ['CreateLoadBalancer', (params) => balancers.createLoadBalancer(params, context)],
    ['DescribeLoadBalancers', (params) => balancers.describeLoadBalancers(params, context)],
    ['DeleteLoadBalancer', (params) => balancers.deleteLoadBalancer(params, context)],
    ['ModifyLoadBalancerAttributes', (params) => balancers.modifyLoadBalancerAttributes(params, context)],
    ['DescribeLoadBalancerAttributes', (params) => balancers.describeLoadBalancerAttributes(params, context)],
    ['CreateListener', (params) => balancers.createListener(params, context)],
    ['DescribeListeners', (params) => balancers.describeListeners(params, context)],
    ['DescribeListenerAttributes', (params) => describeListenerAttributes(params, context)],
    ['DeleteListener', (params) => balancers.deleteListener(params, context)],
    ['DescribeCapacityReservation', (params) => describeCapacityReservation(params, context)],
    ['CreateTargetGroup', (params) => groups.createTargetGroup(params, context)],
    ['DescribeTargetGroups', (params) => groups.describeTargetGroups(params, context)],
    ['DeleteTargetGroup', (params) => groups.deleteTargetGroup(params, context)],
    ['ModifyTargetGroupAttributes', (params) => groups.modifyTargetGroupAttributes(params, context)],
    ['DescribeTargetGroupAttributes', (params) => groups.describeTargetGroupAttributes(params, context)],
    ['RegisterTargets', (params) => groups.registerTargets(params, context)],
    ['DeregisterTargets', (params) => groups.deregisterTargets(params, context)],
    ['DescribeTargetHealth', (params) => groups.describeTargetHealth(params, context)],
    ['AddTags', (params) => tags.addTags(params, context)],
    ['RemoveTags', (params) => tags.removeTags(params, context)],
    ['DescribeTags', (params) => tags.describeTags(params, context)],
  ]);
}

/** AWS's defaults for an HTTP listener. */
const LISTENER_ATTRIBUTES = new Map([['routing.http.response.server.enabled', 'true']]);

function describeListenerAttributes(params: Params, { registry }: ElbContext): XmlNode {
  registry.listener(params.need('ListenerArn'));
  return renderAttributes(LISTENER_ATTRIBUTES);
}

/** Describes the capacity reservation: none was requested. */
function describeCapacityReservation(params: Params, { registry }: ElbContext): XmlNode {
  registry.loadBalancer(params.need('LoadBalancerArn'));
  return { CapacityReservationState: null, DecreaseRequestsRemaining: 0 };
}
