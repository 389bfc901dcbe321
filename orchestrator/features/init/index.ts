/** `orchestrator init`: the files to begin with. */
import type { Output } from '../../cli/output.ts';
import type { Given, FeatureDeclaration } from '../../cli/program/feature.ts';
import { flag, yesFlag } from '../../cli/program/flags.ts';

export const INIT: FeatureDeclaration = {
  commands: [
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
        const { initCommand } = await import('./command.ts');
        return ({ runId: folder, url: urls = [], yes }: Given & { url?: string[] }, output: Output) =>
          initCommand({ folder: folder!, urls, yes }, output);
      },
    },
  ],
};
