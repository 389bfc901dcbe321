/** Calls that only other clients make, not our own adapters; they query settings that are never set here. */
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { ElbContext } from './registry.ts';
import { renderAttributes } from './render.ts';

/** AWS's defaults for an HTTP listener. */
const LISTENER_ATTRIBUTES = new Map([['routing.http.response.server.enabled', 'true']]);

export function describeListenerAttributes(params: Params, { registry }: ElbContext): XmlNode {
  registry.listener(params.need('ListenerArn'));
  return renderAttributes(LISTENER_ATTRIBUTES);
}

/** None was requested. */
export function describeCapacityReservation(params: Params, { registry }: ElbContext): XmlNode {
  registry.loadBalancer(params.need('LoadBalancerArn'));
  return { CapacityReservationState: null, DecreaseRequestsRemaining: 0 };
}
