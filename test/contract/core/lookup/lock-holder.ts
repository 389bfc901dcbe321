/**
 * A main server reduced to its lock: takes it, reports that, and keeps it until it is lost or stdin's owner ends it.
 * With `writing` it is then in a fenced write, and never ends that.
 */
import { type LockTimes, takeLock } from '../../../../orchestrator/core/lookup/run-lock.ts';
import { openDatabase } from '../../../../orchestrator/core/db/connect.ts';
import { createStores } from '../../../../orchestrator/core/db/create-stores.ts';
import { assertFence } from '../../../../orchestrator/core/db/locks.ts';
import { systemClock } from '../../../../shared/adapters/system-clock.ts';
import { describeError } from '../../../../shared/domain/errors.ts';
import { LOCK_NAMES } from '../../../support/lock-request.ts';
import { features } from '../../../support/features.ts';

const [url = '', times = '', aheadMs = '0', mode = ''] = process.argv.slice(2);
const clock = { ...systemClock, now: () => systemClock.now() + Number(aheadMs) };
const database = await openDatabase(url, { clock });
const { runs } = createStores(database, features);
try {
  const lock = await takeLock({ runs, names: LOCK_NAMES, clock, times: JSON.parse(times) as LockTimes });
  process.stdout.write(`held ${lock.fence}\n`);
  if (mode === 'writing') {
    await assertFence(await database.knex.transaction(), database, lock.fence);
    process.stdout.write('writing\n');
  }
  lock.lost.addEventListener('abort', () => process.stdout.write('lost\n'));
  process.on('SIGTERM', () => {
    void (async () => {
      await lock[Symbol.asyncDispose]();
      await database.close();
      process.stdout.write('released\n');
    })();
  });
} catch (error) {
  process.stdout.write(`refused: ${describeError(error)}\n`);
  await database.close();
}
