/** A partial Core for unit tests; access to a member that the test did not provide throws. */
import { pino } from 'pino';
import type { Core } from '../../../orchestrator/core/model/core.ts';
import { readPart } from '../../../orchestrator/core/act/results/load-parts.ts';
import { ProcessState } from '../../../orchestrator/core/model/process-state.ts';
import { ALLOW_ALL } from './builders.ts';

export function aCore(parts: Partial<Core>): Core & { alarms: string[] } {
  const alarms: string[] = [];
  const core = {
    runId: '20260101-000000-test',
    log: pino({ level: 'silent' }),
    processState: new ProcessState(),
    robots: { policy: ALLOW_ALL },
    readPart,
    alarm: async (detail: string) => void alarms.push(detail),
    alarms,
    ...parts,
  };
  return new Proxy(core, {
    get(target, name) {
      if (name in target || typeof name === 'symbol') return Reflect.get(target, name) as unknown;
      throw new Error(`the test gives no core.${name}`);
    },
  }) as Core & { alarms: string[] };
}
