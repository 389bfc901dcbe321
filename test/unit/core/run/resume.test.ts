import { afterEach, describe, expect, it } from 'vitest';
import { carryOut } from '../../../../orchestrator/core/run/carry-out.ts';
import { resumeRun } from '../../../../orchestrator/core/run/resume.ts';
import type { RunContext } from '../../../../orchestrator/core/run/run-context.ts';
import { newRunKeys } from '../../../../orchestrator/core/new-run.ts';
import { tempDir } from '../../../support/temp-dir.ts';
import { aRun } from '../builders.ts';

describe('a resumed run on AWS', () => {
  const folder = tempDir();
  const path = process.env.PATH;
  afterEach(() => {
    process.env.PATH = path;
    folder.remove();
  });

  it('needs neither npm nor its cache until it launches something', async () => {
    process.env.PATH = '/nonexistent';
    const { settings } = aRun();
    const listen = '127.0.0.1:0';
    const run = aRun({
      dryRun: false,
      ...newRunKeys(),
      phase: 'releasing',
      settings: {
        ...settings,
        sandbox: null,
        aws: { ...settings.aws, endpoint: null },
        server: { ...settings.server, callbackListen: listen },
      },
    });
    const reached = new Error('the loop is reached');
    const said: string[] = [];
    const output = { json: false, line: (text = '') => void said.push(text), document: () => undefined };
    const port = new Proxy({}, { get: () => () => Promise.reject(reached) });
    const rows = { run: port, fleet: port, work: port, results: port };
    const stores = { runs: port, of: () => rows, bind: () => rows };
    const interrupts = { leave: AbortSignal.abort(), onFirst: () => undefined };
    const lock = { fence: 1, lost: new AbortController().signal };
    const config = { file: folder.file('fleet.yaml'), values: { server: { listen } } };
    const progress = () => ({ show: () => undefined, end: () => undefined });
    const context = { stores, lock, config, interrupts, output, progress, features: [] } as unknown as RunContext;
    await expect(resumeRun(context, run).then((opened) => carryOut(context, opened))).rejects.toBe(reached);
    expect(said).toContain(`Run ${run.id}, on AWS, goes on from releasing.`);
  }, 20_000);
});
