/** Commands that prepare, maintain and clean up what runs depend on: files, account, bundle, image. */
import type { CommandDeclaration } from './feature.ts';
import { architectureFlag, configFlag, flag, yesFlag } from './flags.ts';
import { readDuration } from './readers.ts';

export const ACCOUNT_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: 'bundle',
    help: ['docs/decisions/0006-boot.md', 'bundle --upload'],
    description: 'make what instances fetch at boot: the crawl API with its own Node',
    options: [
      configFlag,
      architectureFlag('all in aws.instance_types'),
      flag('--upload', 'put it into aws.bucket, as the first run would'),
      flag('--out <file>', 'write it to this file; - is stdout'),
    ],
    load: async () => (await import('../commands/bundle.ts')).bundleCommand,
  },
  {
    name: 'gc',
    help: ['docs/decisions/0019-gc.md', 'gc --dry-run', 'gc'],
    description: 'find what dead main servers have left at AWS: a first gc marks it, a later one ends it',
    options: [configFlag, flag('--dry-run', 'show what it would do, change nothing')],
    load: async () => (await import('../commands/clean-up.ts')).gcCommand,
  },
  {
    name: 'prune',
    help: ['docs/recrawl.md', 'prune', 'prune --older-than 90d --yes'],
    description: 'remove products, events and changes of old runs from the database; rows and reports stay',
    options: [
      configFlag,
      flag('--older-than <duration>', 'instead of retention, such as 90d', readDuration),
      yesFlag('before removing'),
    ],
    load: async () => (await import('../commands/clean-up.ts')).pruneCommand,
  },
];
