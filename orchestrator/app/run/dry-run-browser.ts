/** The browser of a dry run: the instances are processes here, so it must be on this machine. */
import { findChromium } from '../../../shared/adapters/find-chromium.ts';

/**
 * Sets the browser for the instances that the sandbox boots, unless the user has (CRAWLFLEET_CHROMIUM). Throws
 * `platform` before anything is launched when a page must be rendered and there is no browser.
 */
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
