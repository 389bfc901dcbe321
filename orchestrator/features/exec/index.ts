/** `orchestrator exec`: commands on the instances of a run, and updates of their bundle. */
import { parseDuration } from '../../../shared/domain/quantity.ts';
import type { Output } from '../../cli/output.ts';
import type { Given, FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag, flag } from '../../cli/program/flags.ts';
import { readDuration, readSlots } from '../../cli/program/readers.ts';

export const EXEC: FeatureDeclaration = {
  commands: [
    {
      name: 'exec',
      help: [
        'docs/operations.md',
        'exec RUN -- uptime',
        "exec RUN --slot 0 --slot 3 -- 'df -h / | tail -1'",
        'exec RUN --update',
      ],
      description: 'run a shell command on the instances of a run, or bring them to the bundle of this version',
      argument: ['<run>', 'its name, as `status` lists it'],
      rest: ['[command...]', 'after --: its words, joined by blanks, are one line for the shell'],
      options: [
        flag('--slot <number>', 'only this slot; may be repeated', readSlots),
        flag('--timeout <duration>', 'time limit on each instance', readDuration).default('60s'),
        flag('--update', 'replace the bundle, one instance after another').conflicts('slot'),
        configFlag,
      ],
      async load() {
        const { execCommand, updateCommand } = await import('./command.ts');
        type Flags = Given & { slot?: number[]; timeout: string; update?: boolean };
        return ({ slot: slots = [], timeout, update, runId, ...given }: Flags, output: Output) => {
          const options = { ...given, runId: runId!, words: given.rest, slots, timeoutMs: parseDuration(timeout)! };
          return update ? updateCommand(options, output) : execCommand(options, output);
        };
      },
    },
  ],
};
