/** `orchestrator probe`: finds the pace that a site tolerates, by runs of one instance each. */
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { formatDuration } from '../../../shared/domain/quantity.ts';
import { intervalUnder } from '../../core/model/robots-pace.ts';
import type { Findings } from './findings.ts';
import type { ProbeLimits, SeriesResult } from './series.ts';
import type { Caller } from '../../core/caller.ts';
import { writeSettings } from '../../core/config/edit-settings.ts';
import { loadConfig } from '../../core/config/load-config.ts';
import { robotsOf } from '../../core/prepare/preflight.ts';
import { type PlayOptions, playSeries } from './play-series.ts';
import { probe } from './probe.ts';

export interface ProbeOptions extends Pick<
  PlayOptions,
  'configPath' | 'environment' | 'features' | 'dryRun' | 'isVerbose'
> {
  limits: ProbeLimits;
  /** Asked once, with the plan of the first series; false launches nothing. */
  confirm: () => Promise<boolean>;
  /** Writes what is recommended into the configuration file. */
  write: boolean;
  /** Sees every result as soon as it is there. */
  onResult: (result: SeriesResult) => void;
}

/** Throws what keeps the first series from starting. */
export async function probeSite(
  options: ProbeOptions,
  caller: Caller,
): Promise<{ findings: Findings; exitCode: ExitCode; written: readonly string[] }> {
  const { write, onResult } = options;
  const { output } = caller;
  const config = loadConfig(options);
  const robots = await robotsOf({
    ...config,
    values: { ...config.values, site: { ...config.values.site, robots: 'respect' } },
  });
  const intervalsMs = options.limits.intervalsMs.map((ms) => intervalUnder(robots, ms));
  const limits = { ...options.limits, intervalsMs: [...new Set(intervalsMs)] };
  let isInterrupted = false;
  let begun = 0;
  let failure: ExitCode | null = null;
  const findings = await probe(limits, {
    async play(series, watch) {
      const skip = begun * series.requests;
      const isFirst = begun++ === 0;
      const confirm = async (): Promise<boolean> => {
        isInterrupted = !(await options.confirm());
        return !isInterrupted;
      };
      const onInterrupt = (): void => {
        isInterrupted = true;
      };
      try {
        const asked = isFirst ? confirm : null;
        const exitCode = await playSeries(
          { ...options, limits, series, watch, skip, confirm: asked, onInterrupt },
          caller,
        );
        if (!EXPECTED.has(exitCode)) failure = exitCode;
      } catch (error) {
        if (isFirst) throw error;
        // What earlier series have found is worth its report.
        output.line(`! ${describeError(error)}`);
        failure = error instanceof AppError ? error.exitCode : EXIT.internal;
      }
    },
    onResult,
    isInterrupted: () => isInterrupted || caller.interrupts.leave.aborted,
  });
  const settings = write ? settingsOf(findings) : [];
  if (settings.length > 0) writeSettings(config.file, settings);
  const written = settings.map(({ path, value }) => `${path.join('.')}: ${value}`);
  return { findings, exitCode: exitCodeOf(findings, failure), written };
}

/** Ends of a run that say nothing against its series: it was stopped, or the site has banned its address. */
const EXPECTED: ReadonlySet<ExitCode> = new Set([
  EXIT.complete,
  EXIT.interrupted,
  EXIT.banned,
  EXIT.failedProducts,
  EXIT.deadline,
]);

function settingsOf({ interval, coolDown }: Findings) {
  const text = (ms: number): string => formatDuration(ms).replaceAll(' ', '');
  return [
    ...(interval === null ? [] : [{ path: ['site', 'interval'], value: text(interval.ms) }]),
    ...(coolDown === null ? [] : [{ path: ['site', 'ban', 'cool_down'], value: text(coolDown.ms) }]),
  ];
}

function exitCodeOf({ end, interval }: Findings, failure: ExitCode | null): ExitCode {
  if (end === 'interrupted') return EXIT.interrupted;
  if (end === 'cut-short') return failure ?? EXIT.internal;
  return interval === null ? EXIT.banned : EXIT.complete;
}
