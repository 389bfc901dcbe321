/** Alarms about conditions that last: raised once, not at every retry. */
import type { EpochId } from '../../shared/domain/epoch-id.ts';
import type { Core } from './model/core.ts';

/** Raises the alarm if this main server has not raised one under this key before. */
export async function alarmOnce(
  core: Pick<Core, 'alarm' | 'processState'>,
  key: string,
  detail: string,
  at?: EpochId,
): Promise<void> {
  if (core.processState.raisedAlarms.has(key)) return;
  core.processState.raisedAlarms.add(key);
  await core.alarm(detail, at);
}
