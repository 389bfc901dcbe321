/** Waits for a site that this machine cannot reach, and launches nothing if it stays down. */
import { AppError } from '../../../shared/domain/errors.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import type { RobotsReading } from '../../../shared/domain/robots-matcher.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { Config } from '../config/load-config.ts';
import { robotsOf } from './preflight.ts';
import { deadlineOf } from './settings-of.ts';

const LONGEST_PAUSE_MS = 15_000;
const SHORTEST_PAUSE_MS = 500;
/** Minimum number of retries, however short the wait is. */
const FEWEST_TRIES = 5;
/** A dry run waits at most this share of its deadline. */
const DRY_SHARE = 1 / 4;

export interface SiteWait {
  clock: Clock;
  signal: AbortSignal;
  say: (text: string) => void;
  /** Reads robots.txt; omitted: that of the configured site. */
  read?: () => Promise<RobotsReading>;
}

function siteWaitMs({ values }: Pick<Config, 'values'>, dryRun: boolean, deadlineMs: number): number {
  const { site_wait: waitMs } = values.run;
  return dryRun ? Math.min(waitMs, deadlineMs * DRY_SHARE) : waitMs;
}

/**
 * Returns the site's robots.txt once it can be read; `first` is the result of the first read. Throws `site-down` when
 * that takes longer than `run.site_wait`, and `interrupted` when the user ends the wait. With `site.check: off` any
 * result is accepted.
 */
export async function awaitSite(
  first: RobotsReading,
  config: Config,
  dryRun: boolean,
  wait: SiteWait,
): Promise<RobotsReading> {
  const { clock, signal, say } = wait;
  const read = wait.read ?? ((): Promise<RobotsReading> => robotsOf(config));
  let policy = first;
  if (policy.access !== 'none' || config.values.site.check === 'off') return policy;
  const waitMs = siteWaitMs(config, dryRun, deadlineOf(config));
  const endMs = clock.monotonic() + waitMs;
  const pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitMs / FEWEST_TRIES));
  if (waitMs > 0)
    say(`The site does not answer: ${policy.source}; waiting up to ${formatDuration(waitMs)} for it (run.site_wait).`);
  for (let leftMs = waitMs; leftMs > 0; leftMs = endMs - clock.monotonic()) {
    const { retryAfterMs = 0 } = policy;
    if (retryAfterMs > leftMs) break;
    await clock.sleep(Math.max(retryAfterMs, Math.min(pauseMs, leftMs)), signal);
    if (signal.aborted) throw new AppError('interrupted', 'interrupted before anything was launched');
    policy = await read();
    if (policy.access === 'none') continue;
    say(`The site answers now: ${policy.source}`);
    return policy;
  }
  throw new AppError('site-down', `the site is down, so nothing was launched: ${policy.source}`, {
    hint: 'Try again later. Where this machine cannot reach the site and instances can: site.check: off; run.site_wait is how long a run waits.',
  });
}
