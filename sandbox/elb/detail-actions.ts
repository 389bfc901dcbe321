/** Calls that our own adapters never make and other people's clients do; what they ask for is never set here. */
import type { Params } from '../query-protocol.ts';
import type { XmlNode } from '../xml.ts';
import type { ElbContext } from './registry.ts';
import { renderAttributes } from './render.ts';

/** As AWS shows them for an HTTP listener that nobody has changed. */
const LISTENER_ATTRIBUTES = new Map([['routing.http.response.server.enabled', 'true']]);

export function describeListenerAttributes(params: Params, { registry }: ElbContext): XmlNode {
  registry.listener(params.need('ListenerArn'));
  return renderAttributes(LISTENER_ATTRIBUTES);
}

/** None was asked for. */
export function describeCapacityReservation(params: Params, { registry }: ElbContext): XmlNode {
  registry.loadBalancer(params.need('LoadBalancerArn'));
  return { CapacityReservationState: null, DecreaseRequestsRemaining: 0 };
}
