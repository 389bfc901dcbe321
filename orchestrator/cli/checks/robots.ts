/** What robots.txt says about the products and the pace. */
import { findingsOf as robotsFindings } from '../site-robots.ts';
import type { Check } from './check.ts';
import { failed, ok, warning } from './check.ts';

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
      return [
        failed('site-down', text, 'Check whether the site is up; site.check: off where only instances can reach it'),
      ];
    }
    const { warnings, fault } = robotsFindings(policy, about, products.ids);
    if (fault !== null)
      return [
        failed(
          'infeasible',
          fault,
          'Other products, or permission from the site; site.robots: ignore only with that permission',
        ),
      ];
    return warnings.length > 0 ? warnings.map((text) => warning(text)) : [ok(policy.source)];
  },
};
