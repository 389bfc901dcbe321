/** `orchestrator serve`: the operator's page. */
import type { Output } from '../../cli/output.ts';
import type { Given, FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag, dryRunFlag, flag } from '../../cli/program/flags.ts';

export const SERVE: FeatureDeclaration = {
  commands: [
    {
      name: 'serve',
      help: ['docs/dashboard.md', 'serve', 'serve --schedule', 'serve --listen 127.0.0.1:0'],
      description: "the operator's page: every run, live; it starts nothing by itself",
      options: [
        configFlag,
        flag('--listen <address>', 'address and port; default: server.operator, 127.0.0.1:8701'),
        flag('--schedule', 'run the schedule too: one service for the main server'),
        dryRunFlag,
      ],
      async load() {
        const { serveCommand } = await import('./command.ts');
        return (given: Given & { listen?: string; schedule?: boolean }, output: Output) =>
          serveCommand({ ...given, processEnvironment: process.env, launcher: process.argv[1]! }, output);
      },
    },
  ],
  load: async () => ({
    runEvents: (await import('./run-events.ts')).chartsOfRuns,
    reportPage: async (run, stores) => (await import('./report-html.ts')).htmlReport(run, stores),
  }),
};
