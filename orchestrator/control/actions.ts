/**
 * What `decide` may ask for. Every action is idempotent: it may be asked for again while it is under way or after it
 * was carried out, and then changes nothing.
 */
import type { InstancePhase, RunPhase } from '../../shared/domain/states.ts';
import type { CloudInstance } from '../cloud/compute.ts';

interface OfSlot {
  slot: number;
  epoch: number;
}

export type Action =
  | { kind: 'move-run'; from: RunPhase; to: RunPhase; reason: string | null }
  | { kind: 'ensure-balancer' }
  /** ELBv2 has lost the balancer: forget it and every registration with it. */
  | { kind: 'forget-balancer' }
  /** Write the claim for a slot; `pool` counts the types and zones tried before. */
  | ({ kind: 'claim'; pool: number } & OfSlot)
  /** Ask EC2 for a claimed instance, with the stored request. */
  | ({ kind: 'launch' } & OfSlot)
  /** EC2 shows an instance with the claim's tags, or a new state of one. */
  | ({ kind: 'sight'; instance: CloudInstance } & OfSlot)
  | ({ kind: 'move-instance'; from: InstancePhase; to: InstancePhase; reason: string | null } & OfSlot)
  | ({ kind: 'register'; instanceId: string } & OfSlot)
  /** Send waiting chunks through the balancer; no slot may hold more than `limitChunks`. */
  | { kind: 'offer'; limitChunks: number }
  /** Look for the manifest of an instance that says it has finished, and check it. */
  | ({ kind: 'confirm' } & OfSlot)
  /** Close the epoch of a lost instance: list its parts, write the manifest, take its open products back. */
  | ({ kind: 'close' } & OfSlot)
  | ({ kind: 'terminate'; instanceId: string } & OfSlot)
  | { kind: 'load' }
  | { kind: 'remove-balancer' }
  /** End every product that has no outcome as failed, publish the rows, end the run. */
  | { kind: 'publish' };

/** Two actions with the same key are the same piece of work. */
export function actionKey(action: Action): string {
  return 'slot' in action ? `${action.kind} ${action.slot}.${action.epoch}` : action.kind;
}
