/** Moves of an instance as actions. Pure. */
import type { Action } from '../model/actions.ts';
import type { InstanceRecord } from '../model/stores.ts';

/** Gives the instance up, for a reason of `LOSS` or EC2's own. */
export function lose(record: InstanceRecord, reason: string, detail?: string): Action {
  return move(record, 'lost', reason, detail === undefined ? reason : `${reason}: ${detail}`);
}

/** The move of the instance from its recorded phase. */
export function move(
  record: InstanceRecord,
  to: 'booting' | 'ready' | 'crawling' | 'banned' | 'uploading' | 'lost' | 'terminated',
  reason: string | null = null,
  detail: string | null = reason,
): Action {
  return { kind: 'move-instance', slot: record.slot, epoch: record.epoch, from: record.phase, to, reason, detail };
}
