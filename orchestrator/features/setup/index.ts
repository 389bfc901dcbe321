/** `orchestrator setup`: what the account needs, as Terraform. */
import type { Output } from '../../cli/output.ts';
import type { SetupOptions } from './command.ts';
import type { SetupFlags } from './values.ts';
import type { FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag, flag } from '../../cli/program/flags.ts';
import { readCount } from '../../cli/program/readers.ts';

export const SETUP: FeatureDeclaration = {
  commands: [
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
        flag(
          '--main-server-on <where>',
          'make the main server as well: a small machine that runs the schedule',
        ).choices(['ec2']),
        flag('--controller-user <user>', 'an IAM user that gets the rights of the main server'),
        flag('--ebs-kms-key <arn>', "the KMS key of volumes: aws.volume's, or the account's default one"),
        flag('--keep-days <days>', 'how long objects of runs are kept', readCount).default(30),
        flag('--image', 'with the rights of orchestrator image'),
        flag('--commands', 'with the rights of orchestrator exec (default: aws.commands)'),
        flag('--canary', 'with the port that npm run canary serves its pages at'),
      ],
      async load() {
        const { setupCommand } = await import('./command.ts');
        return (given: SetupOptions & SetupFlags, output: Output) => setupCommand({ ...given, flags: given }, output);
      },
    },
  ],
};
