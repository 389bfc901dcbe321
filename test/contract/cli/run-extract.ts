/** Runs `orchestrator extract` in this process and captures its output. */
import { features } from '../../support/features.ts';
import { extractCommand, type ExtractFlags } from '../../../orchestrator/cli/commands/extract.ts';
import type { TrialReport } from '../../../orchestrator/core/trial/trial-report.ts';

export interface Run {
  exitCode: number;
  text: string;
  report: TrialReport & { exitCode: number };
}

const NONE: ExtractFlags = {
  configPath: undefined,
  mapping: undefined,
  url: undefined,
  id: undefined,
  file: undefined,
  urlOf: undefined,
  field: undefined,
  render: undefined,
  userAgent: undefined,
  pages: undefined,
  chromiumPath: undefined,
  environment: {},
  features,
};

export async function runExtract(flags: Partial<ExtractFlags>): Promise<Run> {
  const lines: string[] = [];
  const documents: unknown[] = [];
  const exitCode = await extractCommand(
    { ...NONE, ...flags },
    { json: true, line: (text = '') => void lines.push(text), document: (value) => void documents.push(value) },
  );
  return { exitCode, text: lines.join('\n'), report: documents[0] as Run['report'] };
}
