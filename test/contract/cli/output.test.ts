/**
 * What a site, a database and a user have written, on a terminal, in a pipe and in files: real processes, the terminal
 * by `script`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/mariadb/database.ts';
import { type CommandOptions, type CommandResult, runCommand } from '../../support/processes.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { LAUNCHER } from '../../system/fleet.ts';
import { createRun, openBench, settings } from '../core/db/harness.ts';

/** Clears the screen, makes a link, sets the title (C1), reverses text, rings. */
const HOSTILE = '\u001b[2J\u001b]8;;https://evil.example\u0007x\u009d0;owned\u009c\u202eabc\u007f';
const ORDINARY = 'Åäö 汉语 قميص می\u200cخواهم 👨\u200d👩\u200d👧';
const FORMULA = '=1+1';
const CONTROL = /(?!\t)[\p{Cc}\u202a-\u202e]/u;

const folder = tempDir('crawlfleet-terminal-');
let database: TestDatabase;
let run: string;

beforeAll(async () => {
  database = await createTestDatabase('sqlite');
  const bench = await openBench(database);
  const own = settings('shown');
  const site = { productUrl: 'http://127.0.0.1:1/{id}', intervalMs: 1_000 } as typeof own.site;
  ({ id: run } = await createRun(bench, [HOSTILE, 'P2'], { settings: { ...own, site } }));
  const { knex } = bench.db;
  const row = { url: 'http://127.0.0.1:1/', run_id: run, crawled_at: '2026-11-21 02:15:30' };
  await knex('shown').insert([
    { ...row, product_id: HOSTILE, title: HOSTILE },
    { ...row, product_id: 'P2', title: ORDINARY },
    { ...row, product_id: 'P3', title: FORMULA },
  ]);
  const failed = { outcome: 'failed', reason: 'parse', detail: HOSTILE };
  await knex('crawlfleet_items').where({ run_id: run }).update(failed);
  await knex('crawlfleet_runs').where({ id: run }).update({ phase: 'completed', reason: HOSTILE });
  await bench.db.close();
  writeFileSync(
    folder.file('fleet.yaml'),
    `site: { product_url: "http://127.0.0.1:1/{id}", mapping: { fields: { title: h1 } } }
products: { query: "select id from products" }
database: { url: "${database.url}" }
results: { table: shown }
`,
  );
  const logs = folder.file(`.crawlfleet/runs/${run}`);
  mkdirSync(logs, { recursive: true });
  writeFileSync(`${logs}/log.ndjson`, `${JSON.stringify({ level: 30, time: 1, msg: HOSTILE, more: HOSTILE })}\n`);
});
afterAll(async () => {
  await database.drop();
  folder.remove();
});

const words = (args: readonly string[]): string[] => [LAUNCHER, ...args, '--config', folder.file('fleet.yaml')];

const inPipe = (...args: string[]): Promise<CommandResult> =>
  runCommand(process.execPath, words(args), { cwd: folder.path });

/** Both outputs on one terminal, with the line ends of a file. */
async function onTerminal(args: readonly string[], { env = {}, input = '' }: CommandOptions = {}): Promise<string> {
  const command = [process.execPath, ...words(args)].map((word) => `'${word}'`).join(' ');
  const { stdout } = await runCommand('script', ['-qefc', command, '/dev/null'], { cwd: folder.path, env, input });
  return stdout.replaceAll(/\r+\n/g, '\n');
}

const RUN = 'NAME OF THE RUN';

describe('text from outside', () => {
  const isHarmless = async (args: readonly string[], options?: CommandOptions): Promise<void> => {
    const shown = await onTerminal(
      args.map((word) => (word === RUN ? run : word)),
      options,
    );
    expect(shown).toContain(String.raw`\u001b[2J`);
    expect(shown.replaceAll('\n', '')).not.toMatch(CONTROL);
  };

  it.each([
    ['rows', ['export']],
    ['a usage error', ['export', '--format', HOSTILE]],
  ])('in %s does not control the terminal', (_title, args) => isHarmless(args));

  it.each([
    ['rows as JSON lines', ['export', '--format', 'jsonl']],
    ['what became of a product', ['product', HOSTILE]],
    ['what happened', ['explain']],
    ['a log', ['logs']],
    ['the failed products', ['status', RUN, '--failed']],
    ['an error', ['status', HOSTILE]],
  ])('in %s does not control it either', { tags: ['nightly'] }, (_title, args) => isHarmless(args));

  it('in an error that no command has caught does not control the terminal', () => {
    const preload = `process.once("beforeExit",()=>{throw(new(Error)(${JSON.stringify(HOSTILE)}))})`;
    return isHarmless(['cost'], {
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` },
    });
  });

  it('is in a document on a terminal as in the document in a pipe', async () => {
    const args = ['product', HOSTILE, '--json'];
    const shown = await onTerminal(args);
    const piped = await inPipe(...args);
    expect(shown.replaceAll('\n', '')).not.toMatch(CONTROL);
    const document = shown.slice(shown.indexOf('{\n'), shown.lastIndexOf('}') + 1);
    expect(JSON.parse(document)).toEqual(JSON.parse(piped.stdout));
    expect(piped.stdout).toContain('\u009d');
  });

  it('is exact in a pipe, and ordinary text on a terminal too', async () => {
    const { stdout } = await inPipe('export');
    expect(stdout.split('\r\n').slice(1, 3).join()).toContain(`${HOSTILE},${HOSTILE},`);
    expect(stdout).toContain(`P2,${ORDINARY},`);
    expect(await onTerminal(['export'])).toContain(`P2,${ORDINARY},`);
  });
});

describe('export --to', () => {
  it('writes to stdout for -, with nothing else there, and through a pipe', async () => {
    const rows = (await inPipe('export')).stdout;
    const dash = await inPipe('export', '--to', '-');
    expect(dash).toMatchObject({ exitCode: 0, stdout: rows });
    expect(existsSync(folder.file('-'))).toBe(false);
    execFileSync('mkfifo', [folder.file('pipe')]);
    const [read, through] = await Promise.all([
      readFile(folder.file('pipe'), 'utf8'),
      inPipe('export', '--to', 'pipe'),
    ]);
    expect(read).toBe(rows);
    expect(through.stdout).toBe(`3 rows of run ${run} are in pipe.\n`);
  });

  it.each([
    [['--to', 'none/rows.csv'], 'cannot write'],
    [['--to', '-', '--format', 'parquet'], 'Parquet is written to a file'],
    [['--to', '-', '--json'], 'the rows need a file'],
  ])('refuses %j', { tags: ['nightly'] }, async (args, words) => {
    expect(await inPipe('export', ...args)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(words) });
  });

  it('writes Parquet through a pipe as into a file', { tags: ['nightly'] }, async () => {
    const parquet = ['export', '--format', 'parquet', '--to'];
    execFileSync('mkfifo', [folder.file('parquet')]);
    const [read] = await Promise.all([readFile(folder.file('parquet')), inPipe(...parquet, 'parquet')]);
    await inPipe(...parquet, 'rows.parquet');
    expect(read.equals(readFileSync(folder.file('rows.parquet')))).toBe(true);
    expect(read.length).toBeGreaterThan(500);
  });
});

describe('export --safe', () => {
  const rows = (): string => readFileSync(folder.file('rows.csv'), 'utf8');

  it('makes text that is a formula plain text; a pipe, and a file without a terminal, get it exactly', async () => {
    expect((await inPipe('export', '--safe')).stdout).toContain(`P3,'${FORMULA},`);
    expect((await inPipe('export')).stdout).toContain(`P3,${FORMULA},`);
    const { stdout } = await inPipe('export', '--to', 'rows.csv', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ rows: 3, safe: false });
    expect(rows()).toContain(`P3,${FORMULA},`);
  });

  it.each([
    ['', "'"],
    ['n', ''],
  ])('is asked on a terminal: %j', async (answer, before) => {
    const shown = await onTerminal(['export', '--to', 'rows.csv'], { input: `${answer}\n` });
    expect(shown).toContain('One cell is a formula to a spreadsheet.');
    expect(rows()).toContain(`P3,${before}${FORMULA},`);
    expect(rows()).toContain(HOSTILE);
  });

  it('is not asked for other formats, nor for rows on the terminal', { tags: ['nightly'] }, async () => {
    expect(await onTerminal(['export', '--to', 'rows.jsonl', '--format', 'jsonl'])).not.toContain('formula');
    expect(await onTerminal(['export'])).not.toContain('formula to');
    const refused = await inPipe('export', '--safe', '--format', 'jsonl');
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--safe is for CSV') });
  });
});
