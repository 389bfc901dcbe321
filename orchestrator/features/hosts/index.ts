/** `orchestrator hosts`: what is known of one of many hosts, and what an operator asks of all runs there. */
import type { Output } from '../../cli/output.ts';
import type { FeatureDeclaration, Given } from '../../cli/program/feature.ts';
import { configFlag, flag } from '../../cli/program/flags.ts';

export const HOSTS: FeatureDeclaration = {
  commands: [
    {
      name: 'hosts',
      help: [
        'docs/hosts.md',
        'hosts show shop.example',
        'hosts deny shop.example',
        'hosts pace shop.example 60s',
        'hosts deny shop.example --undo',
      ],
      description: 'one of many hosts: when it was asked; that it is asked no more, or slower',
      argument: ['<action>', 'show, deny or pace'],
      rest: ['[words...]', 'the host, as a domain, a name in it or a URL; for pace then a duration, such as 60s'],
      options: [flag('--undo', 'take back what deny or pace has stored'), configFlag],
      async load() {
        const { hostsCommand } = await import('./command.ts');
        return ({ runId: action, rest: words, ...given }: Given & { undo?: boolean }, output: Output) =>
          hostsCommand({ ...given, action: action!, words }, output);
      },
    },
  ],
};
