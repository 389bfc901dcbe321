/** `orchestrator probe`: the pace that a site tolerates. */
import { parseDuration } from '../../../shared/domain/quantity.ts';
import type { Output } from '../../cli/output.ts';
import type { Given, FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag, dryRunFlag, flag, launchFlags } from '../../cli/program/flags.ts';
import { readCount, readDuration, readDurations } from '../../cli/program/readers.ts';

export const PROBE: FeatureDeclaration = {
  commands: [
    {
      name: 'probe',
      help: [
        'docs/probe.md',
        'probe --dry-run --i-have-permission',
        'probe --i-have-permission --intervals 30s,10s,5s --budget 700 --write',
      ],
      description: 'find the pace that a site tolerates, and how long it bans, from addresses that it may ban',
      options: [
        configFlag,
        flag('--i-have-permission', "the site's owner allows requests until a ban; without it nothing is sent"),
        flag('--intervals <durations>', 'intervals to try, the longest first', readDurations).default(
          [30_000, 20_000, 10_000, 5_000, 2_000],
          '30s,20s,10s,5s,2s',
        ),
        flag('--requests <number>', 'requests of one series, from one address at one interval', readCount).default(200),
        flag('--budget <number>', 'maximum requests in all', readCount).default(1_000),
        flag('--retry-every <duration>', 'how often a banned address is tried again', readDuration).default('3m'),
        flag('--max-ban <duration>', 'how long the end of a ban is waited for', readDuration).default('2h'),
        flag('--write', 'write the recommended interval and cool-down into the configuration'),
        dryRunFlag,
        ...launchFlags,
      ],
      async load() {
        const { probeCommand } = await import('./command.ts');
        type Flags = Given & {
          iHavePermission?: boolean;
          intervals: number[];
          requests: number;
          budget: number;
          retryEvery: string;
          maxBan: string;
          write?: boolean;
        };
        return (given: Flags, output: Output) => {
          const { iHavePermission: hasPermission = false, write = false, requests, budget } = given;
          const times = { retryEveryMs: parseDuration(given.retryEvery)!, maxBanMs: parseDuration(given.maxBan)! };
          const limits = { intervalsMs: given.intervals, requests, budget, ...times };
          return probeCommand({ ...given, hasPermission, write, limits }, output);
        };
      },
    },
  ],
};
