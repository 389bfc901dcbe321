/** Whether the machines of a run must install Chromium at boot: that takes minutes, which the plan counts. */
import { toAppError } from '../cloud/aws-errors.ts';
import { readImage, browserOn } from '../cloud/image-facts.ts';
import { listOwnImages } from '../cloud/image-lookup.ts';
import { lazyEc2 } from '../cloud/sdk-clients.ts';
import type { BrowserBoot } from '../plan/defaults.ts';
import { type Architecture, architectureOf, BROWSER_MEMORY_GB, describeInstanceType } from '../plan/instance-types.ts';
import { awsOptions } from '../cloud-access/cloud-access.ts';
import type { Config } from '../config/load-config.ts';
import type { Target } from '../config/target.ts';
import { findChromium } from '../../../shared/adapters/find-chromium.ts';

/** Calls EC2 only when it matters. Of named images only Debian's own is known to get Chromium at boot. */
export async function browserBootOf(config: Config, target: Target): Promise<BrowserBoot> {
  const { site, aws } = config.values;
  if (site.render === 'http' || target.dryRun) return 'ready';
  const options = awsOptions(target, false);
  if (aws.image !== null) {
    const named = await readImage(options, aws.image);
    return named !== null && browserOn(named) === 'debian' ? 'installed' : 'ready';
  }
  const lazy = lazyEc2(options);
  try {
    const own = await listOwnImages(await lazy.get());
    const ready = new Set(own.filter(({ state }) => state === 'available').map(({ architecture }) => architecture));
    return architecturesWithBrowser(aws.instance_types).every((one) => ready.has(one)) ? 'ready' : 'installed';
  } catch (error) {
    throw toAppError(error, 'DescribeImages', target.endpoint);
  } finally {
    lazy.close();
  }
}

/** The plan has not chosen the type yet, so every candidate type that can hold a browser counts. */
export function architecturesWithBrowser(types: readonly string[]): Architecture[] {
  const holding = types.filter((type) => describeInstanceType(type).memoryGb >= BROWSER_MEMORY_GB);
  return [...new Set((holding.length > 0 ? holding : types).map(architectureOf))];
}

/** The warning of a plan whose machines install Chromium at their boot. */
export const INSTALLED_AT_BOOT =
  'Each machine installs Chromium at its boot, because aws.image is a plain Debian, or this account has no image with Chromium ' +
  'for every type in aws.instance_types that holds a browser: the plan assumes 2.5 minutes for a boot and 5 for a slow one, an estimate that was never ' +
  'measured. "orchestrator image" makes such an image once.';

/** Sets CRAWLFLEET_CHROMIUM for the sandbox's instances, unless the user has. Throws `platform` without one. */
export async function provideBrowser(
  render: 'http' | 'browser' | 'auto',
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (render === 'http') return;
  // Playwright's own folder of browsers is below the home directory, which instances do not share.
  const { chromium } = await import('playwright');
  environment.CRAWLFLEET_CHROMIUM = findChromium({
    named: environment.CRAWLFLEET_CHROMIUM,
    playwrightPath: () => chromium.executablePath(),
  });
}
