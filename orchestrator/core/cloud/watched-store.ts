/** An object store that detects a missing or inaccessible bucket: those errors do not pass on their own. */
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { classifyAwsError } from './aws-errors.ts';

type Operation = 'list' | 'read' | 'write';

const LOST_CODES: readonly string[] = ['NoSuchBucket', 'AccessDenied', 'AllAccessDisabled'];

/**
 * The same store. `onChange` receives a message that names the bucket at the first such failure, and null when every
 * kind of call that failed has succeeded again.
 */
export function watchStore(store: ObjectStore, bucket: string, onChange: (detail: string | null) => void): ObjectStore {
  const failing = new Map<Operation, string>();
  const note = (operation: Operation, error: unknown): void => {
    const { code, message } = error === null ? { code: '', message: '' } : classifyAwsError(error);
    const isLost = LOST_CODES.includes(code);
    // Other errors say nothing about the bucket.
    if (error !== null && !isLost) return;
    const before = failing.size;
    if (isLost) failing.set(operation, message);
    // A bucket that answers one call exists again; permissions are tracked per kind of call.
    else if ([...failing.values()].some((text) => text.includes('NoSuchBucket'))) failing.clear();
    else failing.delete(operation);
    if (before === 0 && failing.size > 0) onChange(`bucket ${bucket} (${operation}): ${message}`);
    if (before > 0 && failing.size === 0) onChange(null);
  };
  const watched = async <T>(operation: Operation, call: () => Promise<T>): Promise<T> => {
    try {
      const result = await call();
      note(operation, null);
      return result;
    } catch (error) {
      note(operation, error);
      throw error;
    }
  };
  return {
    putIfAbsent: (...args) => watched('write', () => store.putIfAbsent(...args)),
    putSourceIfAbsent: (...args) => watched('write', () => store.putSourceIfAbsent(...args)),
    exists: (key) => store.exists(key),
    get: (...args) => watched('read', () => store.get(...args)),
    presignGet: (...args) => store.presignGet(...args),
    async *list(prefix) {
      try {
        for await (const object of store.list(prefix)) {
          note('list', null);
          yield object;
        }
        note('list', null);
      } catch (error) {
        note('list', error);
        throw error;
      }
    },
  };
}
