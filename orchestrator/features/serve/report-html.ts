/** `report --html`: the page of a run as one file to mail, which asks no server for anything. */
import { createHash } from 'node:crypto';
import type { RunSample } from '../../core/model/sample.ts';
import type { RunRecord, StoreReaders } from '../../core/model/stores.ts';
import { pageAssets } from './bundle-page.ts';
import { readRun, readStory, type RunDocument, type Story } from '../../core/read/run-documents.ts';

export interface ReportData {
  run: RunDocument;
  samples: RunSample[];
  story: Story;
}

export async function htmlReport(run: RunRecord, stores: StoreReaders): Promise<string> {
  const reader = stores.of(run.id);
  const [document, samples, story, assets] = await Promise.all([
    readRun(run, reader),
    stores.runs.samples?.(run.id, 0) ?? [],
    readStory(run, reader),
    pageAssets(),
  ]);
  const text = (path: string): string => Buffer.from(assets.get(path)!.body).toString('utf8');
  // Neither may end its element early.
  const script = text('/main.js').replaceAll('</script', String.raw`<\/script`);
  const style = text('/main.css').replaceAll('</style', String.raw`<\/style`);
  const data: ReportData = { run: document, samples, story };
  const policy = `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(style)}'; img-src data:`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>crawlfleet ${run.id}</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="report">${JSON.stringify(data).replaceAll('<', String.raw`\u003c`)}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

const hashOf = (text: string): string => `sha256-${createHash('sha256').update(text).digest('base64')}`;
