/** Events that are no moves: alarms, notes, orders of a person. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { RunEvent } from './stores.ts';

/** Of the place alone, whatever else the given object holds. */
export function eventOf(kind: string, atMs: number, detail: string, at?: EpochId | null): RunEvent {
  return { atMs, kind, slot: at?.slot ?? null, epoch: at?.epoch ?? null, from: null, to: null, detail };
}
