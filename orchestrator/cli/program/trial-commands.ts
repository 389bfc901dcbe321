/** Commands to test things before a run: a page, a run on a virtual clock, an AWS endpoint on this machine. */
import { parseDuration } from '../../../shared/domain/quantity.ts';
import type { ExtractFlags } from '../../core/trial/trial-input.ts';
import type { Chances } from '../../core/simulation/scenario.ts';
import type { SimulateOptions } from '../../features/simulate/command.ts';
import type { Output } from '../output.ts';
import type { CommandDeclaration, Given } from './add-command.ts';
import { configFlag, deadlineFlag, dryRunFlag, flag, launchFlags, maxCostFlag, optionalConfigFlag } from './flags.ts';
import { readCount, readDuration, readDurations, readPort, readSeed, readShare } from './readers.ts';

export const TRIAL_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: 'extract',
    help: [
      'docs/mapping.md',
      'extract --url https://shop.example/item/P1',
      'extract --mapping mapping.yaml --file page.html --field price',
    ],
    description: 'read one page with a mapping and show what each field gives, step by step',
    options: [
      flag('-m, --mapping <file>', 'mapping file (default: the one of the configuration)'),
      flag('--url <url>', 'get this page: one request, from this machine'),
      flag('--file <file>', 'read a saved page'),
      flag('--url-of <url>', 'with --file: the address the page was saved from'),
      flag('--field <name>', 'show this field only'),
      flag('--render <how>', 'how to get the page').choices(['http', 'browser']),
      flag('--user-agent <text>', 'who you say you are, with a link'),
      optionalConfigFlag('take mapping and site settings from here'),
    ],
    async load() {
      const { extractCommand } = await import('../commands/extract.ts');
      return (given: ExtractFlags, output: Output) =>
        extractCommand({ ...given, chromiumPath: process.env.CRAWLFLEET_CHROMIUM }, output);
    },
  },
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
      flag('--runs <number>', 'number of runs; a single one prints its timeline', readCount).default(20),
      flag('--seed <number>', 'the same seed gives the same runs', readSeed).default(1),
      dryRunFlag,
    ],
    async load() {
      const { simulateCommand } = await import('../../features/simulate/command.ts');
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
      const { probeCommand } = await import('../../features/probe/command.ts');
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
  {
    name: 'sandbox',
    help: ['docs/sandbox.md', 'sandbox', 'sandbox --port 0'],
    description: 'an AWS endpoint (EC2, ELBv2, S3) on this machine, until Ctrl-C',
    options: [
      flag('-p, --port <port>', 'port of the endpoint; 0 for any free one', readPort).default(4566),
      flag('--data <folder>', 'where it keeps its state').default('.crawlfleet/sandbox/standalone'),
    ],
    load: async () => (await import('../commands/sandbox.ts')).sandboxCommand,
  },
];
