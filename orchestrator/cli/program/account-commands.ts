/** Commands that prepare, maintain and clean up what runs depend on: files, account, bundle, image. */
import type { SetupFlags } from '../../features/setup/values.ts';
import type { SetupOptions } from '../../features/setup/command.ts';
import type { Output } from '../output.ts';
import type { CommandDeclaration, Given } from './add-command.ts';
import { architectureFlag, configFlag, dryRunFlag, flag, planFlags, yesFlag } from './flags.ts';
import { readCount, readDuration } from './readers.ts';

export const ACCOUNT_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: 'init',
    help: [
      'docs/configuration.md',
      'init',
      'init my-shop --url https://shop.example/item/P1 https://shop.example/item/P2',
    ],
    description: 'write a commented fleet.yaml and mapping.yaml, with --url from the product pages of a shop',
    argument: ['[folder]', 'where to write them', '.'],
    options: [
      flag('--url <url...>', 'product pages to read: what they have becomes the mapping'),
      yesFlag('which fields to leave out'),
    ],
    async load() {
      const { initCommand } = await import('../../features/init/command.ts');
      return ({ runId: folder, url: urls = [], yes }: Given & { url?: string[] }, output: Output) =>
        initCommand({ folder: folder!, urls, yes }, output);
    },
  },
  {
    name: 'setup',
    help: ['docs/aws.md', 'setup > crawlfleet.tf', 'setup --bucket my-bucket --out aws'],
    description: 'print what the account needs (bucket, roles, security groups) as Terraform; changes nothing',
    options: [
      configFlag,
      flag('--out <folder>', 'write it to a file there'),
      flag('--region <region>', 'instead of aws.region'),
      flag('--bucket <name>', 'instead of aws.bucket'),
      flag('--owner <name>', 'instead of aws.owner'),
      flag('--name <prefix>', 'prefix of the names of roles, policies and groups (default: crawlfleet)'),
      flag('--vpc <id>', 'the VPC of the fleet (default: that of aws.subnets, else the default VPC)'),
      flag(
        '--main-server <where>',
        'vpc, or the addresses it comes from such as 203.0.113.7 (default: from server.url)',
      ),
      flag('--main-server-on <where>', 'make the main server as well: a small machine that runs the schedule').choices([
        'ec2',
      ]),
      flag('--controller-user <user>', 'an IAM user that gets the rights of the main server'),
      flag('--ebs-kms-key <arn>', "the KMS key of volumes: aws.volume's, or the account's default one"),
      flag('--keep-days <days>', 'how long objects of runs are kept', readCount).default(30),
      flag('--image', 'with the rights of orchestrator image'),
      flag('--commands', 'with the rights of orchestrator exec (default: aws.commands)'),
      flag('--canary', 'with the port that npm run canary serves its pages at'),
    ],
    async load() {
      const { setupCommand } = await import('../../features/setup/command.ts');
      return (given: SetupOptions & SetupFlags, output: Output) => setupCommand({ ...given, flags: given }, output);
    },
  },
  {
    name: 'doctor',
    help: ['docs/doctor.md', 'doctor', 'doctor --dry-run', 'doctor --deadline 4h --max-cost 5'],
    description: 'check everything a run depends on: rights, quota, network, database, site; launches nothing',
    options: [...planFlags, dryRunFlag],
    load: async () => (await import('../../features/doctor/command.ts')).doctorCommand,
  },
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
    name: 'image',
    help: ['docs/browser-image.md', 'image', 'image --print packer', 'image --list'],
    description: 'make the image with Chromium that crawls with a browser boot from (Debian 13, by EC2 itself)',
    options: [
      configFlag,
      architectureFlag('that of aws.instance_types'),
      flag('--base <image>', 'the Debian 13 image to build on, instead of the newest'),
      flag('--print <what>', 'only print the recipe, or a file for Packer that uses it').choices(['recipe', 'packer']),
      flag('--list', 'only list the images that this command has made'),
      flag('--prune', 'only remove old images that no run or setting needs'),
      yesFlag('first'),
    ],
    load: async () => (await import('../../features/image/command.ts')).imageCommand,
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
