/** Events other than moves from phase to phase: alarms, notes, requests of a person. */
import type { EpochId } from '../../../shared/domain/epoch-id.ts';
import type { RunEvent } from './stores.ts';

/** Copies only slot and epoch of `at`. */
export function eventOf(kind: string, atMs: number, detail: string, at?: EpochId | null): RunEvent {
  return { atMs, kind, slot: at?.slot ?? null, epoch: at?.epoch ?? null, from: null, to: null, detail };
}
