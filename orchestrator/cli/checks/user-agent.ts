/** Whether the site's operators can find out who crawls. */
import { hasLink, userAgentOf } from '../user-agent.ts';
import { VERSION } from '../version.ts';
import type { Check } from './check.ts';
import { ok, warning } from './check.ts';

export const userAgent: Check = {
  id: 'user-agent',
  title: 'User-Agent',
  kinds: ['aws', 'dry'],
  run({ config }) {
    const name = userAgentOf(config, VERSION);
    // A run on AWS without a link is refused before any check.
    if (hasLink(config.values.site.user_agent)) return Promise.resolve([ok(name)]);
    const remedy = 'site.user_agent: "examplebot/1.0 (+https://example.com/bot)"';
    return Promise.resolve([warning(`${name} has no link to a page that says who you are`, remedy)]);
  },
};
