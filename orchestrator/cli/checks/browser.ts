/** The browser of a dry run, whose instances are processes of this machine. */
import { provideBrowser } from '../dry-run-browser.ts';
import type { Check } from './check.ts';
import { ok } from './check.ts';

export const browser: Check = {
  id: 'browser',
  title: 'browser of this machine',
  kinds: ['dry'],
  async run({ config, environment }) {
    const { render } = config.values.site;
    if (render === 'http') return [ok('not needed: site.render is http')];
    // It sets the path it finds in the environment it is given; ours stays unchanged.
    const found: NodeJS.ProcessEnv = { ...process.env, ...environment };
    await provideBrowser(render, found);
    return [ok(`Chromium at ${found.CRAWLFLEET_CHROMIUM}`)];
  },
};
