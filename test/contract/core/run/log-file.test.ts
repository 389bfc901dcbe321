/** A run's log: short lines whatever the input, two files at most, and `logs` reads both. */
import { features } from '../../../support/features.ts';
import { appendFileSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { logsCommand } from '../../../../orchestrator/cli/commands/logs.ts';
import { LogRotation, MAX_LINE_BYTES } from '../../../../orchestrator/core/run/log-file.ts';
import type { Stores } from '../../../../orchestrator/core/model/stores.ts';
import { createAlarm, openLog } from '../../../../orchestrator/core/run/run-session.ts';
import { type TempDir, tempDir } from '../../../support/temp-dir.ts';

describe('the log of a run', () => {
  let folder: TempDir;
  let file: string;
  beforeEach(() => {
    folder = tempDir();
    file = folder.file('.crawlfleet/runs/r1/log.ndjson');
  });
  afterEach(() => folder.remove());

  const linesOf = (name: string): Record<string, unknown>[] =>
    readFileSync(name, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => {
        expect(Buffer.byteLength(line)).toBeLessThan(MAX_LINE_BYTES);
        return JSON.parse(line) as Record<string, unknown>;
      });

  it('limits lines to 2 kB, whatever the input, and marks those that were longer', () => {
    const log = openLog(file, 'r1', () => undefined);
    log.info({ slot: 3 }, 'x'.repeat(100_000));
    log.warn({ body: Buffer.alloc(100_000), error: '\u001b\u{1f4a3}'.repeat(50_000), ['k'.repeat(5_000)]: 1 }, 'bomb');
    log.error(
      { ...Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`f${i}`, i])), slot: 'y'.repeat(9_000) },
      'many',
    );
    log.info({ n: 1 }, 'short');
    const lines = linesOf(file);
    expect(lines.map(({ truncatedBytes }) => Number(truncatedBytes) > MAX_LINE_BYTES)).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(lines).toMatchObject([{ slot: 3 }, { msg: 'bomb' }, { msg: 'many', f0: 0 }, { msg: 'short', n: 1 }]);
  });

  it('names slot and epoch of a callback that raised an alarm, and nothing of its content', async () => {
    const stores = { of: () => ({ run: { addEvent: async () => undefined } }) } as unknown as Stores;
    const alarm = createAlarm(
      { runId: 'r1', stores, onAlarm: () => undefined },
      openLog(file, 'r1', () => undefined),
    );
    const callback = { slot: 1, epoch: 2, signature: 'A'.repeat(86), body: new Uint8Array(400_000) };
    await alarm('a callback with a wrong signature was refused', callback);
    const [{ time, ...line }] = linesOf(file) as [Record<string, unknown>];
    expect(time).toEqual(expect.any(Number));
    expect(line).toEqual({
      level: 40,
      run: 'r1',
      slot: 1,
      epoch: 2,
      msg: 'a callback with a wrong signature was refused',
    });
  });

  it('treats no line end within an alarm as the end of a log line, nor does the terminal', async () => {
    const said: string[] = [];
    const stores = { of: () => ({ run: { addEvent: async () => undefined } }) } as unknown as Stores;
    const onAlarm = (text: string): void => void said.push(text);
    const alarm = createAlarm(
      { runId: 'r1', stores, onAlarm },
      openLog(file, 'r1', () => undefined),
    );
    await alarm('slot 1: disk full\n! the run is complete\u001b[2J');
    expect(said).toEqual(['slot 1: disk full\\u000a! the run is complete\\u001b[2J']);
  });

  it('rotates when it is full, so that at most two files exist, and reads both', async () => {
    openLog(file, 'r1', () => undefined);
    const rotation = new LogRotation(file, () => undefined, 1_000);
    for (let i = 0; i < 60; i++) {
      const line = `${JSON.stringify({ level: 30, time: 0, run: 'r1', msg: `entry ${i}` })}\n`;
      rotation.makeRoomFor(line);
      appendFileSync(file, line);
    }
    const older = join(dirname(file), 'log.1.ndjson');
    expect(statSync(file).size).toBeLessThanOrEqual(1_000);
    expect(statSync(older).size).toBeLessThanOrEqual(1_000);
    const entries: string[] = [];
    const configPath = folder.file('fleet.yaml');
    appendFileSync(
      configPath,
      `site: { product_url: "http://127.0.0.1:1/{id}", mapping: { fields: { title: h1 } } }
products: { query: "select id from products" }
database: { url: "sqlite:///nowhere" }
`,
    );
    const options = {
      configPath,
      environment: {},
      features,
      runId: 'r1',
      follow: false,
      slot: null,
      level: 'info' as const,
    };
    await logsCommand(options, {
      json: false,
      line: (text = '') => void entries.push(text),
      document: () => undefined,
    });
    expect(entries.length).toBeGreaterThan(linesOf(file).length);
    expect(entries.at(-1)).toContain('entry 59');
    expect(entries.map((text) => Number(text.split(' ').at(-1)))).toEqual(
      entries.map((_, i) => 60 - entries.length + i),
    );
  });
});
