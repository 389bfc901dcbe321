/** `orchestrator simulate`: runs on a virtual clock. */
import { parseDuration } from '../../../shared/domain/quantity.ts';
import type { Output } from '../../cli/output.ts';
import type { Chances } from '../../core/simulation/scenario.ts';
import type { SimulateOptions } from './command.ts';
import type { Given, FeatureDeclaration } from '../../cli/program/feature.ts';
import { dryRunFlag, flag, deadlineFlag, maxCostFlag, optionalConfigFlag } from '../../cli/program/flags.ts';
import { readCount, readDuration, readExponent, readSeed, readShare } from '../../cli/program/readers.ts';

export const SIMULATE: FeatureDeclaration = {
  commands: [
    {
      name: 'simulate',
      help: [
        'docs/simulate.md',
        'simulate --deadline 4h --losses 5%',
        'simulate --products 30000 --interval 10s --deadline 4h',
      ],
      description: 'simulate a run on a virtual clock, with failures; touches nothing',
      options: [
        optionalConfigFlag('configuration file; fleet.yaml if it is there'),
        flag('-n, --products <number>', 'number of products, instead of those of the configuration', readCount),
        deadlineFlag,
        flag('--interval <duration>', 'start to start of two requests from one address', readDuration),
        flag('--instances <number>', 'number of instances, whatever the plan says', readCount),
        maxCostFlag,
        flag('--losses <share>', 'share of instances that die under way, such as 5%', readShare),
        flag('--bans <share>', 'share of addresses that the site bans', readShare),
        flag('--slow <share>', 'share of instances that keep a tenth of the pace', readShare),
        flag('--boot-failures <share>', 'share of launches that never say hello', readShare),
        flag('--hosts <number>', 'records at this number of hosts, in place of one site', readCount),
        flag('--zipf <exponent>', 'how unevenly records fall on --hosts: 0 evenly, 1 as usual', readExponent),
        flag('--dead <share>', 'share of --hosts that never answer', readShare),
        flag('--runs <number>', 'number of runs; a single one prints its timeline', readCount).default(20),
        flag('--seed <number>', 'the same seed gives the same runs', readSeed).default(1),
        dryRunFlag,
      ],
      async load() {
        const { simulateCommand } = await import('./command.ts');
        type Shares = { losses?: number; bans?: number; slow?: number; bootFailures?: number };
        return (given: SimulateOptions & Given & Shares & { interval?: string }, output: Output) => {
          const { losses: loss = 0, bans: ban = 0, slow = 0, bootFailures: bootFailure = 0 } = given;
          const chances: Chances = { loss, ban, slow, bootFailure };
          const msOf = (text: string | undefined) => (text === undefined ? undefined : parseDuration(text)!);
          const times = { deadlineMs: msOf(given.deadline), intervalMs: msOf(given.interval) };
          return simulateCommand({ ...given, ...times, chances }, output);
        };
      },
    },
  ],
};
