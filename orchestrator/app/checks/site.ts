/** Checks of the site: User-Agent and robots.txt. */
import { hasLink, userAgentOf } from '../plan/target.ts';
import { type Check, failed, ok, warning } from './check.ts';
import { findingsOf as robotsFindings } from '../plan/site-robots.ts';

export const userAgent: Check = {
  id: 'user-agent',
  title: 'User-Agent',
  kinds: ['aws', 'dry'],
  run({ config }) {
    const name = userAgentOf(config);
    // A run on AWS without a link is refused before any check.
    if (hasLink(config.values.site.user_agent)) return ok(name);
    const remedy = 'site.user_agent: "examplebot/1.0 (+https://example.com/bot)"';
    return warning(`${name} has no link to a page that says who you are`, remedy);
  },
};

export const robots: Check = {
  id: 'robots',
  title: 'robots.txt of the site',
  kinds: ['aws', 'dry'],
  needs: ['products'],
  limitMs: 20_000,
  isSlow: true,
  async run({ config, facts }) {
    const { site } = config.values;
    const [policy, products] = await Promise.all([facts.robots(), facts.products()]);
    const about = { productUrl: site.product_url, intervalMs: site.interval };
    if (policy.access === 'none' && site.check === 'on') {
      const text = `robots.txt cannot be read: ${policy.source}; a run would wait for run.site_wait and end with 17, without launching an instance`;
      return failed(
        'site-down',
        text,
        'Check whether the site is up; site.check: off where only instances can reach it',
      );
    }
    const { warnings, fault } = robotsFindings(policy, about, products.ids);
    if (fault !== null)
      return failed(
        'infeasible',
        fault,
        'Other products, or permission from the site; site.robots: ignore only with that permission',
      );
    return warnings.length > 0 ? warnings.map((text) => warning(text)) : [ok(policy.source)];
  },
};
