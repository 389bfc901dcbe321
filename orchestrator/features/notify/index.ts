/** Notices and pings: `notify` and `ping` of the configuration, `orchestrator notify`. */
import type { FeatureDeclaration } from '../../cli/program/feature.ts';
import { configFlag, flag } from '../../cli/program/flags.ts';

export const NOTIFY: FeatureDeclaration = {
  commands: [
    {
      name: 'notify',
      help: ['docs/notify.md', 'notify --test'],
      description: 'send a test notice to every target of notify',
      options: [
        flag('--test', 'send the notice, and print what each target answers').makeOptionMandatory(),
        configFlag,
      ],
      load: async () => (await import('./command.ts')).notifyCommand,
    },
  ],
  async load() {
    const { NOTIFY_SECTION, PING_SECTION } = await import('./section.ts');
    const { notices } = await import('./announce.ts');
    return { sections: [NOTIFY_SECTION, PING_SECTION], runEvents: notices };
  },
};
