/** Results that are too large for the journal. */
import type { ItemResult } from '../../shared/wire/part.ts';
import { RecordTooLargeError } from './journal-file.ts';

/**
 * Fails the product for its size when its result is too large for the journal, instead of retrying the write forever.
 */
export function recordFitting(result: ItemResult, record: (fitting: ItemResult) => void): void {
  try {
    record(result);
  } catch (error) {
    if (!(error instanceof RecordTooLargeError)) throw error;
    const { n, id, url, at, attempts } = result;
    record({ n, id, url, at, attempts, outcome: 'failed', reason: 'too-large', detail: error.message });
  }
}
