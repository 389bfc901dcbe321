/** Runs that were rebuilt from the bucket after their database was lost. */
import type { RunDescription } from '../../../shared/wire/run-description.ts';
import type { Plan } from '../plan/plan.ts';
import type { RunSettings } from './run-settings.ts';
import type { NewRun, RunRecord } from './stores.ts';

/** The row of a run known only from the bucket. Its private key is lost, so no orders can be signed for it. */
export function rebuiltRun(description: RunDescription): NewRun {
  return {
    id: description.run,
    parentId: description.parent,
    startedAtMs: Date.parse(description.startedAt),
    deadlineAtMs: Date.parse(description.deadline),
    dryRun: description.dryRun,
    settings: rebuiltSettings(description),
    plan: description.plan as unknown as Plan,
    planned: description.planned,
    duplicates: description.duplicates,
    privateKey: '',
    publicKey: description.publicKey,
  };
}

/** The grants were lost with the database: nothing can be compared with them. */
function rebuiltSettings({ settings }: RunDescription): RunSettings {
  // Signed by the run that wrote them from these very types.
  const { grantsKept: _lost, ...kept } = settings as unknown as RunSettings;
  return kept;
}

/** True for a run that was rebuilt from the bucket: it can be loaded but not resumed. */
export const isRebuilt = (run: Pick<RunRecord, 'privateKey'>): boolean => run.privateKey === '';
