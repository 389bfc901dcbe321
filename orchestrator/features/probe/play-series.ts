/**
 * One series of a probe as a run of one instance: the same launch, pace, judgement of pages and clean-up as any other.
 */
import { AppError } from '../../../shared/domain/errors.ts';
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { pagesOf } from '../../../shared/domain/pages-per-product.ts';
import type { ProbeLimits, Series } from './series.ts';
import type { SeriesWatch } from './series-watch.ts';
import type { Caller } from '../../core/caller.ts';
import type { Config } from '../../core/config/load-config.ts';
import { probeTable } from '../../core/prepare/settings-of.ts';
import { startRun, type StartOptions } from '../../core/run/start-run.ts';
import { someOf } from '../../core/prepare/own-urls.ts';
import type { RunSource } from '../../core/prepare/run-source.ts';

/**
 * The time from the plan to the first page and from the last page to the end of the run, with time to spare: minutes on
 * AWS.
 */
const AROUND_MS = 1_200_000;
/** What a request may take beyond its interval: the pace has a margin, and pages may be slow. */
const SLOWER = 1.2;
const SLOWER_MS = 1_000;

export interface PlayOptions extends Pick<StartOptions, 'configPath' | 'environment' | 'features' | 'dryRun'> {
  limits: ProbeLimits;
  series: Series;
  watch: SeriesWatch;
  /** Products that earlier series have begun with: every series asks for others, as long as there are any. */
  skip: number;
  /** Asked with the plan of this series; null: nothing is asked, and the plan is not shown. */
  confirm: (() => Promise<boolean>) | null;
  /** The user's first interrupt; the run has been asked to stop. */
  onInterrupt: () => void;
  /** Shows all lines of the run, not only its alarms. */
  isVerbose: boolean;
}

/** Resolves when the run has ended and its instance is terminated. */
export function playSeries(options: PlayOptions, caller: Caller): Promise<ExitCode> {
  const { limits, series, watch, skip, onInterrupt, isVerbose, confirm, ...place } = options;
  const { output, interrupts } = caller;
  let isConfirmed = confirm === null;
  let stop: (() => void) | null = null;
  return startRun(
    {
      ...place,
      flags: [],
      confirm: async () => (isConfirmed ||= await confirm!()),
    },
    {
      ...caller,
      output: {
        // After the question the report of the probe is what counts.
        line(text) {
          if (isVerbose || !isConfirmed || text?.startsWith('!') || interrupts.leave.aborted) output.line(text);
        },
        document: () => undefined,
        ...(output.log === undefined ? {} : { log: output.log }),
        ...(output.onLost === undefined ? {} : { onLost: output.onLost }),
      },
      interrupts: {
        leave: interrupts.leave,
        onFirst(handler) {
          stop = handler;
          interrupts.onFirst(() => {
            onInterrupt();
            handler();
          });
        },
      },
      progress(plan) {
        const shown = caller.progress(plan);
        return {
          show(world) {
            shown.show(world);
            if (!watch.note(world)) return;
            stop?.();
            stop = null;
          },
          end: () => shown.end(),
        };
      },
    },
    { ...productsFrom(skip, series.requests), configure: (config) => seriesConfig(config, series, limits) },
  );
}

/**
 * A run of one instance that stops at the first ban, tries again now and then, and publishes into a table of its own.
 */
function seriesConfig(config: Config, series: Series, { retryEveryMs, maxBanMs }: ProbeLimits): Config {
  const { values } = config;
  const { site, results, run } = values;
  const crawlMs = series.requests * (SLOWER * series.intervalMs + SLOWER_MS);
  return {
    ...config,
    maxRequests: series.maxRequests,
    values: {
      ...values,
      site: {
        ...site,
        interval: series.intervalMs,
        max_rate: null,
        robots: 'respect',
        conditional: false,
        on_ban: 'cool-down',
        ban: { ...site.ban, cool_down: retryEveryMs },
      },
      products: { ...values.products, recrawl: null },
      results: { ...results, table: probeTable(results.table), history: null, guard: null },
      run: {
        ...run,
        deadline: Math.ceil(AROUND_MS + crawlMs + (series.measuresBan ? maxBanMs : 0)),
        min_instances: 1,
        max_instances: 1,
        max_failed: 1,
      },
      aws: { ...values.aws, recycle_every: null },
      retention: null,
    },
    // A series is no night: nothing of it is announced.
    sections: new Map(),
  };
}

/** Products of products.query for this many requests, the first `skip` of them last. */
const productsFrom = (skip: number, requests: number): RunSource => ({
  isQuery: true,
  async choose(checked) {
    const all = await checked.readProducts(true);
    const { ids } = all;
    if (ids.length === 0) throw new AppError('config-invalid', 'products.query yields no product to ask for');
    const count = Math.min(
      ids.length,
      Math.ceil(requests / pagesOf(checked.config.values.site.pages_per_product).mean),
    );
    const at = skip % ids.length;
    return {
      products: someOf(all, [...ids.slice(at), ...ids.slice(0, at)].slice(0, count), checked.config),
      parentId: null,
    };
  },
});
