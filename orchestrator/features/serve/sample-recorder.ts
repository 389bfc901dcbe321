/** StoreReaders the counters of a run now and then, for its charts. What cannot be stored costs a point of a chart. */
import { systemClock } from '../../../shared/adapters/system-clock.ts';
import { describeError } from '../../../shared/domain/errors.ts';
import { type RunSample, samplePauseMs } from '../../core/model/sample.ts';
import type { World } from '../../core/model/world.ts';
import { costOfRun } from '../../core/decide/end/cost-of-run.ts';
import { liveCounts } from '../../core/read/run-documents.ts';

const END_WITHIN_MS = 5_000;

export class SampleRecorder {
  readonly #add: (sample: RunSample) => Promise<void>;
  readonly #onFault: (text: string) => void;
  #nextMs = 0;
  #last: World | null = null;
  /** The newest; what a slow database has no time for is left out, or it would write long after the run. */
  #waiting: RunSample | null = null;
  #writing: Promise<void> | null = null;

  constructor(add: (sample: RunSample) => Promise<void>, onFault: (text: string) => void) {
    this.#add = add;
    this.#onFault = onFault;
  }

  note(world: World): void {
    this.#last = world;
    if (world.nowMs < this.#nextMs) return;
    this.#nextMs = world.nowMs + samplePauseMs(world.run.deadlineAtMs - world.run.startedAtMs);
    this.#store(world);
  }

  /** StoreReaders how the run has ended; resolves once it is stored, or after five seconds. */
  async end(): Promise<void> {
    if (this.#last) this.#store(this.#last);
    const done = new AbortController();
    await Promise.race([this.#writing, systemClock.sleep(END_WITHIN_MS, done.signal)]);
    done.abort();
  }

  #store(world: World): void {
    this.#waiting = sampleOf(world);
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    for (let sample = this.#waiting; sample !== null; sample = this.#waiting) {
      this.#waiting = null;
      await this.#add(sample).catch((error: unknown) =>
        this.#onFault(`a sample for the charts was not stored: ${describeError(error)}`),
      );
    }
    this.#writing = null;
  }
}

/**
 * The sample in CloudWatch's embedded metric format: the agent makes metrics of the log line.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
export function embeddedMetrics(sample: RunSample, table: string): Record<string, unknown> {
  const { stored, gone, failed, waiting = null, requests, minGapMs, crawling, banned, usd } = sample;
  const metrics: [name: string, unit: string, value: number | null][] = [
    ['ProductsStored', 'Count', stored],
    ['ProductsGone', 'Count', gone],
    ['ProductsFailed', 'Count', failed],
    ['ProductsWaiting', 'Count', waiting],
    ['Requests', 'Count', requests],
    ['SmallestGap', 'Milliseconds', minGapMs],
    ['InstancesCrawling', 'Count', crawling],
    ['AddressesBanned', 'Count', banned],
    ['CostDollars', 'None', usd],
  ];
  const known = metrics.filter(([, , value]) => value !== null);
  const described = known.map(([Name, Unit]) => ({ Name, Unit }));
  return {
    _aws: {
      Timestamp: sample.atMs,
      CloudWatchMetrics: [{ Namespace: 'crawlfleet', Dimensions: [['table']], Metrics: described }],
    },
    table,
    ...Object.fromEntries(known.map(([name, , value]) => [name, value])),
  };
}

function sampleOf({ nowMs, run, fleet, forecast }: World): RunSample {
  const { stored, gone, failed, waiting, requests, minGapMs, banned } = liveCounts(run, fleet.all, nowMs);
  const replies: Record<string, number> = {};
  for (const { progress } of fleet.all)
    for (const [reply, n] of Object.entries(progress?.replies ?? {})) replies[reply] = (replies[reply] ?? 0) + n;
  return {
    atMs: nowMs,
    stored,
    gone,
    failed,
    waiting,
    requests,
    replies,
    minGapMs,
    crawling: fleet.all.filter(({ phase }) => phase === 'crawling').length,
    banned,
    endP50Ms: forecast?.end.p50Ms ?? null,
    endP95Ms: forecast?.end.p95Ms ?? null,
    usd: costOfRun(run, fleet.all, stored, nowMs).actual.total,
  };
}
