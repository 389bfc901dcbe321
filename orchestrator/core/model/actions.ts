/**
 * The actions that `decide` may request. Every action is idempotent: requested again while it is under way or after it
 * was carried out, it changes nothing.
 */
import type { Balancer } from '../cloud/load-balancer.ts';
import type { InstancePhase, RunPhase } from '../../../shared/domain/states.ts';
import type { CloudInstance } from '../cloud/compute.ts';
import type { HostPace } from '../plan/host-pace.ts';
import type { Pool } from './launch-history.ts';
import type { StallCause } from './stall-causes.ts';
import type { EpochId } from '../../../shared/domain/epoch-id.ts';

export type HaltReason = 'banned' | 'site-changed' | StallCause;

export type Action =
  | { kind: 'move-run'; from: RunPhase; to: RunPhase; reason: string | null }
  | { kind: 'ensure-balancer'; region: string }
  /** ELBv2 has lost the balancer: forget it and every registration with it. */
  | { kind: 'forget-balancer'; region: string }
  /** Write the claim for a slot, in this pool; null = in its first choice, as long as the pools are not known yet. */
  /** `why` a slot beyond the plan is filled is noted before the claim. */
  | (EpochId & { kind: 'claim'; pool: Pool | null; why?: string })
  /** Launch a claimed instance with the stored request. */
  | (EpochId & { kind: 'launch' })
  /** EC2 shows an instance with the claim's tags, or a new state of one. */
  | (EpochId & { kind: 'adopt'; instance: CloudInstance })
  | (EpochId & {
      kind: 'move-instance';
      from: InstancePhase;
      to: InstancePhase;
      reason: string | null;
      detail: string | null;
    })
  | (EpochId & { kind: 'register'; instanceId: string; region: string; balancer: Balancer })
  /** Send waiting chunks through the balancer; no slot may hold more than `share` products. */
  | { kind: 'offer'; share: number }
  /** Make URLs that a discovery has found products of the run. */
  | { kind: 'take'; limit: number }
  /** Fetch and check the manifest of an instance that reports that it has finished. */
  | (EpochId & { kind: 'confirm' })
  /** Close the epoch of a lost instance: list its parts, write the manifest, take its open products back. */
  | (EpochId & { kind: 'close' })
  /** A banned instance has dropped its uncrawled products: load its parts, take its open products back. */
  | (EpochId & { kind: 'reassign' })
  /**
   * Stop crawling permanently: every address is banned, the site has changed, there is no balancer to send products
   * through, or nothing comes in.
   */
  | { kind: 'halt'; reason: HaltReason }
  /** Rotate its address: it uploads, closes its epoch and ends, and its slot is filled again. */
  | (EpochId & { kind: 'rotate' })
  | (EpochId & { kind: 'terminate'; instanceId: string })
  /** Noted once in a run: as an event, and with `alarm` as an alarm too. */
  | { kind: 'note'; note: Note; alarm: boolean }
  /** Store what the hosts of the site ask for, which is slower than before. */
  | { kind: 'keep-paces'; paces: readonly HostPace[] }
  | { kind: 'load' }
  | { kind: 'remove-balancer'; region: string }
  /** Remove what ELBv2 may have under the run's name although its row names none. */
  | { kind: 'sweep-balancer'; region: string }
  /** End every product that has no outcome as failed, publish the rows, end the run. */
  | { kind: 'publish' };

/** Two actions with the same key are the same piece of work. */
export function actionKey(action: Action): string {
  if (action.kind === 'note') return `note ${action.note.key}`;
  if ('region' in action) return `${action.kind} ${action.region}`;
  return 'slot' in action ? `${action.kind} ${action.slot}.${action.epoch}` : action.kind;
}

/** `forecast`: the run is late or stalled; an alarm says so too. `decision`: something that was not planned. */
export const NOTED_KINDS = ['forecast', 'decision'] as const;

type NotedKind = (typeof NOTED_KINDS)[number];

export interface Note {
  /** Stored in the event's `to`: the same key is noted once in a run. */
  key: string;
  event: NotedKind;
  detail: string;
  at?: EpochId;
}
