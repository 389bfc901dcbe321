/** Keeps secrets of the user out of the journal, and with it out of parts and callbacks, where a site repeats them. */
import type { UserHeaders } from '../fetch/user-headers.ts';
import type { JournalRecord } from './records.ts';

/** What a page shows as a value is stored; IDs and links lead to pages. */
const KEPT = ['id', 'rows', 'links'];

/** The record with what it quotes of replies masked: addresses, details, evidence. */
export function maskRecord(record: JournalRecord, userHeaders: Pick<UserHeaders, 'maskAll'>): JournalRecord {
  switch (record.t) {
    case 'incident':
      return { ...record, incident: userHeaders.maskAll(record.incident) };
    case 'postponed':
    case 'held':
    case 'result':
      return { ...record, result: userHeaders.maskAll(record.result, KEPT) };
    default:
      return record;
  }
}
