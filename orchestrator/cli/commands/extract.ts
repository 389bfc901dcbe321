/** `orchestrator extract`: reads one page with a mapping and shows what each field gives, step by step. */
import type { ExitCode } from '../../../shared/domain/exit-codes.ts';
import { EXIT } from '../../../shared/domain/exit-codes.ts';
import type { Output } from '../output.ts';
import { askCrawlApi } from '../../app/trial/ask-crawl-api.ts';
import { renderTrial } from '../render-trial.ts';
import type { ExtractFlags } from '../../app/trial/trial-input.ts';
import { readTrialInput } from '../../app/trial/trial-input.ts';
import type { TrialReport } from '../../app/trial/trial-report.ts';
import { reportTrial } from '../../app/trial/trial-report.ts';

export type { ExtractFlags } from '../../app/trial/trial-input.ts';

/** 0 when the product would be stored, 12 when the page lacks what the mapping requires, 1 when there was no page to read. */
export async function extractCommand(flags: ExtractFlags, output: Output): Promise<ExitCode> {
  const { trial, pageName, mappingName } = readTrialInput(flags);
  const report = reportTrial(trial, await askCrawlApi(trial), flags.field);
  for (const line of renderTrial(report, { page: pageName, mapping: mappingName })) output.line(line);
  const exitCode = exitCodeOf(report);
  output.document({ ...report, exitCode });
  return exitCode;
}

function exitCodeOf({ outcome, kind }: TrialReport): ExitCode {
  if (outcome === 'stored') return EXIT.complete;
  return kind === null ? EXIT.internal : EXIT.failedProducts;
}
