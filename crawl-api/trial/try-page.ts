/** Reads one page with a mapping, from a site or from a file, and records how each field got its value. */
import { describeStep } from '../../shared/domain/describe-step.ts';
import { systemClock } from '../../shared/adapters/system-clock.ts';
import type { PageTrial, TrialAnswer } from '../../shared/wire/page-trial.ts';
import { compileMapping } from '../extract/compile-mapping.ts';
import type { PageKind } from '../extract/page-extractor.ts';
import { PageExtractor } from '../extract/page-extractor.ts';
import type { Trace } from '../extract/trace.ts';
import { expectBy } from '../fetch/browser/expected-elements.ts';
import type { PageResult } from '../fetch/page-result.ts';
import type { Hop } from './fetch-once.ts';
import { fetchOnce } from './fetch-once.ts';
import { serveFile } from './file-server.ts';
import { openSource } from './open-source.ts';

/** The last extractor to read the page: a browser's page is read several times while it builds itself. */
interface LastReading {
  kind: PageKind;
  extractor: PageExtractor;
}

/** Throws AppError for an invalid mapping, an unreadable file or a missing browser. */
export async function tryPage(trial: PageTrial): Promise<TrialAnswer> {
  const mapping = await compileMapping(trial.mapping);
  const served = trial.file === null ? null : await serveFile(trial.file);
  try {
    let last: LastReading | null = null;
    const source = await openSource({
      url: served?.url ?? trial.url,
      site: trial.site,
      openExtractor: (kind, fetched) => {
        const extractor = new PageExtractor(mapping, kind, served ? trial.url : fetched, { trace: true });
        last = { kind, extractor };
        return extractor;
      },
      expect: expectBy(mapping),
    });
    try {
      const { result, requests } = await fetchOnce(source, served?.url ?? trial.url, systemClock);
      return describe(result, served ? [] : requests, last);
    } finally {
      await source.close();
    }
  } finally {
    await served?.close();
  }
}

function describe(result: PageResult, requests: Hop[], last: LastReading | null): TrialAnswer {
  switch (result.kind) {
    case 'page': {
      const { rows, missing, links } = result.extraction;
      const trace = last === null ? [] : describeTrace(last.extractor.trace());
      return {
        outcome: 'read',
        requests,
        kind: last?.kind ?? 'html',
        mapping: last?.extractor.mappingName ?? null,
        rows,
        missing,
        links,
        trace,
      };
    }
    case 'gone':
      return { outcome: 'failed', requests, reason: 'gone', detail: `status ${result.reply.status}` };
    case 'failed':
      return { outcome: 'failed', requests, reason: result.reason, detail: result.detail };
    case 'redirect':
    case 'stopped':
      throw new Error(`a trial cannot end as ${result.kind}`);
  }
}

function describeTrace(trace: Trace): (TrialAnswer & { outcome: 'read' })['trace'] {
  return [...trace].map(([field, steps]) => ({
    field,
    steps: steps.map(({ step, count, values }) => ({ step: describeStep(step), count, values })),
  }));
}
