/** How a chunk is offered to the instances behind a load balancer. */
import type { Refusal } from '../../../shared/domain/offer-refusal.ts';
import type { Offer, Receipt } from '../../../shared/wire/instance-api.ts';

export type OfferResult =
  | { kind: 'taken'; receipt: Receipt }
  | { kind: 'refused'; refusal: Refusal }
  /** No instance behind the balancer is ready (503), or the one that got the offer is not. */
  | { kind: 'not-ready'; message: string }
  /** No connection to the balancer: nothing was delivered. */
  | { kind: 'unreachable'; message: string }
  /** No answer, or one that is not ours: an instance may hold the chunk. */
  | { kind: 'unknown'; message: string }
  /** The instance rejects the offer as malformed or unsigned: a fault of the main server. */
  | { kind: 'invalid'; message: string };

export interface OfferSender {
  send(balancerUrl: string, run: { id: string; privateKey: string }, offer: Offer): Promise<OfferResult>;
}
