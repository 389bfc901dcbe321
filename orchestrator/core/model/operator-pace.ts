/** What an operator asks of a run beside its configuration (`orchestrator pace`), as every rule reads it. Pure. */
import type { OperatorPace } from '../plan/host-pace.ts';
import type { RunRecord } from './stores.ts';

type Asked = Pick<RunRecord, 'operatorPace' | 'plan'>;

/** Null where the run keeps to its configuration: no operator has asked for anything, or has reset it. */
export function operatorPaceOf({ operatorPace, plan }: Asked): (OperatorPace & { addresses: number }) | null {
  const pace = operatorPace ?? plan.operatorPace;
  if (pace === undefined || pace.addresses === null) return null;
  return { ...pace, addresses: pace.addresses };
}

/** The interval of each address: as configured, or longer. robots.txt may ask for more. */
export const intervalOf = (run: Asked & Pick<RunRecord, 'settings'>): number =>
  Math.max(run.settings.site.intervalMs, operatorPaceOf(run)?.intervalMs ?? 0);

/** Until when no address sends a request; 0 without a pause. */
export const pausedUntilMs = (run: Asked): number => operatorPaceOf(run)?.pausedUntilMs ?? 0;
