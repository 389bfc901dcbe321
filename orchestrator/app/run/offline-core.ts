/** What `publish` and `load` need of the control core: the database, a log, a clock; no EC2 and no listener. */
import type { Stores } from '../../control/model/stores.ts';
import type { Output } from '../caller.ts';
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import type { Core } from '../../control/model/core.ts';
import { newProcessState } from '../../control/model/process-state.ts';
import type { FinishCore } from '../../control/results/finish.ts';
import type { Config } from '../config/load-config.ts';
import type { RunLock } from './run-lock.ts';
import { createAlarm, logFileOf, openLog } from './run-session.ts';

/** Under the fence of the lock that the command holds. */
export function createOfflineCore(options: {
  runId: string;
  stores: Stores;
  lock: RunLock;
  config: Config;
  output: Output;
}): FinishCore & Pick<Core, 'runId' | 'alarm'> {
  const { runId, stores, lock, config, output } = options;
  const onAlarm = (text: string): void => output.line(`! ${text}`);
  const log = openLog(logFileOf(config, runId), runId, onAlarm);
  const alarm = createAlarm({ runId, stores, onAlarm }, log);
  const binding = { runId, fence: lock.fence, clock: systemClock };
  return { ...stores.bind(binding), runId, clock: systemClock, log, alarm, processState: newProcessState() };
}
