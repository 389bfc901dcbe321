/** Commands that prepare, maintain and clean up what runs depend on: files, account, bundle, image. */
import type { Command } from 'commander';
import { Option } from 'commander';
import type { SetupFlags } from '../../app/setup/values.ts';
import { execute, fleetEnvironment } from './execute.ts';
import type { CommonFlags } from './flags.ts';
import {
  architectureFlag,
  configFlag,
  deadlineFlag,
  dryRunFlag,
  jsonFlag,
  maxCostFlag,
  settingsIn,
  yesFlag,
} from './flags.ts';
import { readCount } from './readers.ts';

interface ImageFlags extends Pick<CommonFlags, 'config' | 'json' | 'yes'> {
  architecture?: 'x86_64' | 'arm64';
  base?: string;
  print?: 'recipe' | 'packer';
  list?: boolean;
  prune?: boolean;
}

export function addAccountCommands(program: Command): void {
  addInit(program);
  addSetup(program);
  addDoctor(program);
  addBundle(program);
  addImage(program);
  addGc(program);
}

function addInit(program: Command): void {
  program
    .command('init')
    .description('write a commented fleet.yaml and mapping.yaml')
    .argument('[folder]', 'where to write them', '.')
    .addOption(jsonFlag())
    .action((folder: string, flags: CommonFlags) =>
      execute(flags, async (output) => (await import('../commands/init.ts')).initCommand(folder, output)),
    );
}

function addSetup(program: Command): void {
  program
    .command('setup')
    .description(
      'print what the account needs (bucket, roles, security groups) as Terraform or aws-cli commands; changes nothing',
    )
    .addOption(configFlag())
    .addOption(
      new Option('--format <format>', 'what it is written in').choices(['terraform', 'aws-cli']).default('terraform'),
    )
    .option('--out <folder>', 'write it to a file there')
    .option('--region <region>', 'instead of aws.region')
    .option('--bucket <name>', 'instead of aws.bucket')
    .option('--owner <name>', 'instead of aws.owner')
    .option('--name <prefix>', 'prefix of the names of roles, policies and groups (default: crawlfleet)')
    .option('--vpc <id>', 'the VPC of the fleet (default: that of aws.subnets, else the default VPC)')
    .option(
      '--main-server <where>',
      'vpc, or the addresses it comes from such as 203.0.113.7 (default: from server.url)',
    )
    .option('--controller-user <user>', 'an IAM user that gets the rights of the main server')
    .option('--keep-days <days>', 'how long objects of runs are kept', readCount, 30)
    .option('--image', 'with the rights of orchestrator image')
    .option('--canary', 'with the port that npm run canary serves its pages at')
    .addOption(jsonFlag())
    .action((flags: SetupFlags & { config: string; format: 'terraform' | 'aws-cli'; out?: string; json?: boolean }) =>
      execute(flags, async (output) => {
        const { setupCommand } = await import('../commands/setup.ts');
        const { config: configPath, format, out } = flags;
        return setupCommand({ configPath, format, out, flags, environment: fleetEnvironment() }, output);
      }),
    );
}

function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('check everything a run depends on: rights, quota, network, database, site; launches nothing')
    .addOption(configFlag())
    .addOption(deadlineFlag())
    .addOption(maxCostFlag())
    .addOption(dryRunFlag())
    .addOption(jsonFlag())
    .action((flags: CommonFlags) =>
      execute(flags, async (output) => {
        const { doctorCommand } = await import('../commands/doctor.ts');
        const { config: configPath, dryRun } = flags;
        const options = { configPath, flags: settingsIn(flags), dryRun: dryRun === true };
        return doctorCommand({ ...options, environment: fleetEnvironment() }, output);
      }),
    );
}

function addBundle(program: Command): void {
  program
    .command('bundle')
    .description('make what instances fetch at boot: the crawl API with its own Node')
    .addOption(configFlag())
    .addOption(architectureFlag('all in aws.instance_types'))
    .option('--upload', 'put it into aws.bucket, as the first run would')
    .option('--out <file>', 'write it to this file')
    .addOption(jsonFlag())
    .action((flags: CommonFlags & { architecture?: 'x86_64' | 'arm64'; upload?: boolean; out?: string }) =>
      execute(flags, async (output) => {
        const { bundleCommand } = await import('../commands/bundle.ts');
        const { config: configPath, architecture, upload, out } = flags;
        const options = { configPath, environment: fleetEnvironment(), architecture, upload: upload === true, out };
        return bundleCommand(options, output);
      }),
    );
}

function addImage(program: Command): void {
  program
    .command('image')
    .description('make the image with Chromium that crawls with a browser boot from (Debian 13, by EC2 itself)')
    .addOption(configFlag())
    .addOption(architectureFlag('that of aws.instance_types'))
    .option('--base <image>', 'the Debian 13 image to build on, instead of the newest')
    .addOption(
      new Option('--print <what>', 'only print the recipe, or a file for Packer that uses it').choices([
        'recipe',
        'packer',
      ]),
    )
    .option('--list', 'only list the images that this command has made')
    .option('--prune', 'only remove old images that no run or setting needs')
    .addOption(yesFlag('first'))
    .addOption(jsonFlag())
    .action((flags: ImageFlags) =>
      execute(flags, async (output) => {
        const { imageCommand } = await import('../commands/image.ts');
        const { config: configPath, architecture, base, print, list, prune, yes } = flags;
        const only = { list: list === true, prune: prune === true };
        const options = { configPath, environment: fleetEnvironment(), yes: yes === true, ...only };
        return imageCommand({ ...options, architecture, base, print }, output);
      }),
    );
}

function addGc(program: Command): void {
  program
    .command('gc')
    .description('find what dead main servers have left at AWS: a first gc marks it, a later one ends it')
    .addOption(configFlag())
    .option('--dry-run', 'show what it would do, change nothing')
    .addOption(jsonFlag())
    .action((flags: CommonFlags) =>
      execute(flags, async (output) => {
        const { gcCommand } = await import('../commands/gc.ts');
        const { config: configPath, dryRun } = flags;
        return gcCommand({ configPath, dryRun: dryRun === true, environment: fleetEnvironment() }, output);
      }),
    );
}
