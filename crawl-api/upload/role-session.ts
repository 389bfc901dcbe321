/**
 * The folder of the instance's objects: the session of its role, to which the policy of the role binds it. STS alone
 * knows the name, which has the id of the role. It is asked before the first upload, when the network is up, and the
 * answer is kept, so that a restarted process uses the same folder.
 */
import { backoffMs } from '../../shared/domain/backoff.ts';
import { describeError } from '../../shared/domain/errors.ts';
import { ROLE_SESSION } from '../../shared/domain/keys.ts';
import type { Retry } from '../process/retry.ts';
import type { StateFolder } from '../process/state-folder.ts';

export interface RoleSessionParts extends Retry {
  /** False in a run of an earlier version: its objects have no such folder. */
  wanted: boolean;
  folder: Pick<StateFolder, 'roleSession' | 'keepRoleSession'>;
  readUserId: () => Promise<string>;
}

const TRIES = 4;
const RETRY = { firstMs: 500, maxMs: 4_000 };

/**
 * Its result resolves to null for no folder: none is wanted, or STS has not answered, which a role without the
 * condition allows.
 */
export function roleSessionOf(parts: RoleSessionParts): (stop: AbortSignal) => Promise<string | null> {
  let found: Promise<string | null> | null = null;
  return (stop) => (found ??= findSession(parts, stop));
}

async function findSession(
  { wanted, folder, readUserId, clock, random, log }: RoleSessionParts,
  stop: AbortSignal,
): Promise<string | null> {
  if (!wanted) return null;
  const kept = folder.roleSession;
  if (kept !== undefined) return kept;
  for (let failures = 0; ; failures++) {
    try {
      const userId = await readUserId();
      if (!ROLE_SESSION.test(userId)) throw new Error(`'${userId.slice(0, 200)}' cannot be the name of a folder`);
      folder.keepRoleSession(userId);
      return userId;
    } catch (error) {
      if (stop.aborted) return null;
      if (failures + 1 === TRIES) {
        log.warn(
          { problem: describeError(error) },
          'STS does not name the session of this role: its results are uploaded without that folder, which a role that is bound to it refuses',
        );
        folder.keepRoleSession(null);
        return null;
      }
      await clock.sleep(backoffMs(failures, RETRY, random.next()), stop);
    }
  }
}
