/** `orchestrator doctor`: everything that a run depends on, checked. */
import type { FeatureDeclaration } from '../../cli/program/feature.ts';
import { dryRunFlag, planFlags } from '../../cli/program/flags.ts';

export const DOCTOR: FeatureDeclaration = {
  commands: [
    {
      name: 'doctor',
      help: ['docs/doctor.md', 'doctor', 'doctor --dry-run', 'doctor --deadline 4h --max-cost 5'],
      description: 'check everything a run depends on: rights, quota, network, database, site; launches nothing',
      options: [...planFlags, dryRunFlag],
      load: async () => (await import('./command.ts')).doctorCommand,
    },
  ],
};
