/** A probe: one series after another, each until its own end, and what they prove. */
import { type Findings, findingsOf } from './findings.ts';
import { nextSeries, type ProbeLimits, type Series, type SeriesResult } from './series.ts';
import { SeriesWatch } from './series-watch.ts';

export interface ProbeParts {
  /**
   * Sends the series from an address of its own, and shows the watch every world, until the watch or the run ends it.
   */
  play: (series: Series, watch: SeriesWatch) => Promise<void>;
  /** Sees every result as soon as it is there. */
  onResult: (result: SeriesResult) => void;
  /** The user has asked to end: nothing more is sent. */
  isInterrupted: () => boolean;
}

/** Rejects only with what `play` rejects with. */
export async function probe(limits: ProbeLimits, { play, onResult, isInterrupted }: ProbeParts): Promise<Findings> {
  const results: SeriesResult[] = [];
  for (;;) {
    if (isInterrupted()) return findingsOf(results, 'interrupted');
    const next = nextSeries(limits, results);
    if (typeof next === 'string') return findingsOf(results, next);
    const watch = new SeriesWatch(next, limits);
    await play(next, watch);
    const result = watch.result();
    results.push(result);
    onResult(result);
  }
}
