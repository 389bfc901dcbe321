/** `orchestrator explain`: what happened in a run, and why. */
import type { FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag } from '../../cli/program/flags.ts';

export const EXPLAIN: FeatureDeclaration = {
  commands: [
    {
      name: 'explain',
      help: ['docs/what-happens-when.md', 'explain', 'explain RUN'],
      kind: 'shows',
      description: 'what happened in a run and why, and what the next one would need',
      argument: ['[run]', 'default: the newest run'],
      options: [configFlag],
      load: async () => (await import('./command.ts')).explainCommand,
    },
  ],
};
