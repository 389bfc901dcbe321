/** `orchestrator discover`: a run that finds what it crawls. */
import type { FeatureDeclaration } from '../../cli/program/feature.ts';
import { addColumnsFlag, dryRunFlag, planFlags, launchFlags, metricsFlag } from '../../cli/program/flags.ts';

export const DISCOVERY: FeatureDeclaration = {
  commands: [
    {
      name: 'discover',
      help: ['docs/discovery.md', 'discover --deadline 2h --dry-run', 'discover --deadline 4h --yes'],
      description: 'find the pages of a site by its links, sitemaps or search, and crawl them',
      options: [...planFlags, dryRunFlag, metricsFlag, addColumnsFlag, ...launchFlags],
      load: async () => (await import('./command.ts')).discoverCommand,
    },
  ],
  async load() {
    return (await import('./data.ts')).discovery;
  },
};
