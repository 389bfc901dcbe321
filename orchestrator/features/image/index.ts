/** `orchestrator image`: the image with Chromium. */
import type { FeatureDeclaration } from '../../cli/program/feature.ts';
import { architectureFlag, configFlag, flag, yesFlag } from '../../cli/program/flags.ts';

export const IMAGE: FeatureDeclaration = {
  commands: [
    {
      name: 'image',
      help: ['docs/browser-image.md', 'image', 'image --print packer', 'image --list'],
      description: 'make the image with Chromium that crawls with a browser boot from (Debian 13, by EC2 itself)',
      options: [
        configFlag,
        architectureFlag('that of aws.instance_types'),
        flag('--base <image>', 'the Debian 13 image to build on, instead of the newest'),
        flag('--print <what>', 'only print the recipe, or a file for Packer that uses it').choices([
          'recipe',
          'packer',
        ]),
        flag('--list', 'only list the images that this command has made'),
        flag('--prune', 'only remove old images that no run or setting needs'),
        yesFlag('first'),
      ],
      load: async () => (await import('./command.ts')).imageCommand,
    },
  ],
};
