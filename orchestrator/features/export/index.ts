/** `orchestrator export`: rows as files. */
import type { ExportFormat } from './command.ts';
import type { FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag, flag, toFlag } from '../../cli/program/flags.ts';

export const EXPORT: FeatureDeclaration = {
  commands: [
    {
      name: 'export',
      help: [
        'docs/dashboard.md',
        'export > rows.csv',
        'export --safe --to for-excel.csv',
        'export RUN --format parquet --to rows.parquet',
      ],
      kind: 'shows',
      description: 'the rows of a run as CSV, JSON lines or Parquet',
      argument: ['[run]', 'default: the newest published run'],
      options: [
        flag('--format <format>', 'form of the rows')
          .choices(['csv', 'jsonl', 'parquet'] satisfies ExportFormat[])
          .default('csv'),
        toFlag,
        flag('--safe', 'CSV in which no text of a page is a formula to a spreadsheet (asked on a terminal)'),
        configFlag,
      ],
      load: async () => (await import('./command.ts')).exportCommand,
    },
  ],
};
