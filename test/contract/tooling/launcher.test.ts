/** bin/orchestrator.js on new and old versions of Node, in a checkout and as an installed package. */
import { randomUUID } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type CommandResult,
  findLeftovers,
  killLeftovers,
  MARKER_VARIABLE,
  runCommand,
  type RunningCommand,
  startCommand,
  waitFor,
} from '../../support/processes.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

const LAUNCHER = fileURLToPath(new URL('../../../bin/orchestrator.js', import.meta.url));
/** Makes a new Node look old to the launcher; the one it starts gets no such option. */
const PRETEND_OLD = `--import=data:text/javascript,${encodeURIComponent(
  `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });`,
)}`;

let folder: TempDir;
let marker: string;
beforeEach(() => {
  folder = tempDir();
  marker = randomUUID();
});
afterEach(() => {
  killLeftovers(marker);
  folder.remove();
});

function put(name: string, text: string): void {
  mkdirSync(dirname(folder.file(name)), { recursive: true });
  writeFileSync(folder.file(name), text);
}

/** A package with the launcher in it; `program` is what it starts. Returns the launcher's path. */
function makePackage(at: string, entry: string, program: string): string {
  put(`${at}package.json`, '{"type":"module"}');
  put(`${at}${entry}`, program);
  put(`${at}${dirname(entry)}/cli/heap-limits${extname(entry)}`, '');
  mkdirSync(folder.file(`${at}bin`), { recursive: true });
  copyFileSync(LAUNCHER, folder.file(`${at}bin/orchestrator.js`));
  return folder.file(`${at}bin/orchestrator.js`);
}

function installNode(): void {
  mkdirSync(folder.file('node_modules/node/bin'), { recursive: true });
  symlinkSync(process.execPath, folder.file('node_modules/node/bin/node'));
}

function start(args: string[]): RunningCommand {
  return startCommand(process.execPath, args, { env: { [MARKER_VARIABLE]: marker } });
}

const ECHO = `console.log(JSON.stringify([process.versions.node, ...process.argv.slice(2)])); process.exitCode = 13;`;
/** Counts interrupts until it gets SIGTERM. */
const WAITS = `
  let interrupts = 0;
  process.on('SIGINT', () => console.log('interrupt', ++interrupts));
  process.on('SIGTERM', () => process.exit(20));
  setInterval(() => {}, 1_000);
  console.log('ready');
`;

it('runs the TypeScript of a checkout', async () => {
  const launcher = makePackage('', 'orchestrator/main.ts', `const typed: number = 1;\n${ECHO}`);
  const result = await runCommand(process.execPath, [launcher, 'run', '--json']);
  expect(result).toMatchObject({ exitCode: 13, stderr: '' });
  expect(JSON.parse(result.stdout)).toEqual([process.versions.node, 'run', '--json']);
});

it('runs the built JavaScript of an installed package, even with the sources beside it', async () => {
  const launcher = makePackage('node_modules/crawlfleet/', 'dist/orchestrator/main.js', ECHO);
  put('node_modules/crawlfleet/orchestrator/main.ts', 'throw new Error("sources");');
  expect((await runCommand(process.execPath, [launcher])).exitCode).toBe(13);
});

describe('what it has compiled', () => {
  const launch = (caches: string): Promise<CommandResult> => {
    const env = { XDG_CACHE_HOME: caches, NODE_COMPILE_CACHE: undefined };
    return runCommand(process.execPath, [LAUNCHER, '--version'], { env });
  };

  const kept = (): [string, number][] =>
    readdirSync(folder.file('caches/crawlfleet'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => [name, statSync(join(parentPath, name)).mtimeMs]);

  it('is kept in the folder of the user, and is right for its next start', async () => {
    expect(await launch(folder.file('caches'))).toMatchObject({ exitCode: 0, stderr: '' });
    const first = kept();
    expect(first.length).toBeGreaterThan(100);
    // Node writes again what V8 rejects, for example because of other flags.
    expect(await launch(folder.file('caches'))).toMatchObject({ exitCode: 0, stderr: '' });
    expect(kept()).toEqual(first);
  });

  it('is not kept where that folder cannot be made', async () => {
    put('caches', 'a file in its place');
    expect(await launch(folder.file('caches'))).toMatchObject({ exitCode: 0, stderr: '' });
  });
});

it('runs when it is started through a link, as npm installs it', async () => {
  const launcher = makePackage('', 'orchestrator/main.ts', ECHO);
  chmodSync(launcher, 0o755);
  symlinkSync(launcher, folder.file('orchestrator-link'));
  expect((await runCommand(process.execPath, [folder.file('orchestrator-link'), 'plan'])).exitCode).toBe(13);
});

it('delegates to the installed Node when its own is too old', async () => {
  const launcher = makePackage('', 'orchestrator/main.ts', ECHO);
  installNode();
  const result = await runCommand(process.execPath, [PRETEND_OLD, launcher, 'run', 'a b']);
  expect(result).toMatchObject({ exitCode: 13, stderr: '' });
  expect(JSON.parse(result.stdout)).toEqual([process.versions.node, 'run', 'a b']);
});

it('explains what to do when its own Node is too old and there is no other', async () => {
  const launcher = makePackage('', 'orchestrator/main.ts', ECHO);
  const result = await runCommand(process.execPath, [PRETEND_OLD, launcher]);
  expect(result).toMatchObject({ exitCode: 4, stdout: '' });
  expect(result.stderr).toContain('20.20.2');
  expect(result.stderr).toContain('npm ci');
});

it.each(['group', undefined] as const)('turns one Ctrl-C into one interrupt (to the %s)', async (to) => {
  const launcher = makePackage('', 'orchestrator/main.ts', WAITS);
  installNode();
  const command = start([PRETEND_OLD, launcher]);
  await waitFor(() => command.stdout().includes('ready'), { what: 'the program to be up' });
  command.kill('SIGINT', to);
  await waitFor(() => command.stdout().includes('interrupt 1'), { what: 'the interrupt' });
  command.kill('SIGTERM');
  expect(await command.finished).toMatchObject({ exitCode: 20, stdout: 'ready\ninterrupt 1\n' });
});

it('ends by the signal that ended the program', async () => {
  const launcher = makePackage('', 'orchestrator/main.ts', `process.kill(process.pid, 'SIGKILL');`);
  installNode();
  expect((await start([PRETEND_OLD, launcher]).finished).signal).toBe('SIGKILL');
});

it('ends the program, too, when it is killed with SIGKILL', async () => {
  const launcher = makePackage('', 'orchestrator/main.ts', WAITS);
  installNode();
  const command = start([PRETEND_OLD, launcher]);
  await waitFor(() => command.stdout().includes('ready'), { what: 'the program to be up' });
  expect(findLeftovers(marker)).toHaveLength(2);
  command.kill('SIGKILL');
  await command.finished;
  await waitFor(() => findLeftovers(marker).length === 0, { what: 'the program to be gone' });
});

it('does not keep a program alive that has nothing more to do', async () => {
  const launcher = makePackage('', 'orchestrator/main.ts', `setTimeout(() => console.log('done'), 20);`);
  installNode();
  expect(await start([PRETEND_OLD, launcher]).finished).toMatchObject({ exitCode: 0, stdout: 'done\n' });
});

it.each([
  ['bash', 'nohup "$0" "$1" 2>&1', true],
  ['bash', '"$0" "$1"', false],
])('the program survives a closing terminal only under nohup: %s -c %s', async (shell, script, outlives) => {
  const launcher = makePackage('', 'orchestrator/main.ts', WAITS);
  const command = startCommand(shell, ['-c', `${script}; exit $?`, process.execPath, launcher], {
    env: { [MARKER_VARIABLE]: marker, _: undefined },
  });
  await waitFor(() => command.stdout().includes('ready'), { what: 'the program to be up' });
  const { pid } = findLeftovers(marker).find(
    (process) => process.command.includes('bin/orchestrator.js') && !process.command.startsWith(shell),
  )!;
  process.kill(pid, 'SIGHUP');
  if (outlives) {
    process.kill(pid, 'SIGINT');
    await waitFor(() => command.stdout().includes('interrupt 1'), { what: 'the signal after it' });
    process.kill(pid, 'SIGTERM');
  }
  // 129: ended by SIGHUP.
  expect((await command.finished).exitCode).toBe(outlives ? 20 : 129);
});

describe('under npm', () => {
  /** `npm run crawl` in a package with this script; the program is installed in it. */
  function npmRun(script: string): RunningCommand {
    const launcher = makePackage('node_modules/crawlfleet/', 'dist/orchestrator/main.js', WAITS);
    chmodSync(launcher, 0o755);
    put('package.json', JSON.stringify({ scripts: { crawl: script } }));
    mkdirSync(folder.file('node_modules/.bin'));
    symlinkSync(launcher, folder.file('node_modules/.bin/orchestrator'));
    // The Node of the tests runs the program, whatever else is on the PATH.
    symlinkSync(process.execPath, folder.file('node_modules/.bin/node'));
    // Tests that were started by nohup pass its name on in `_`, and what nohup starts is to outlive npm.
    const env = { [MARKER_VARIABLE]: marker, npm_lifecycle_script: undefined, _: undefined };
    return startCommand('npm', ['run', '--silent', 'crawl'], { cwd: folder.path, env });
  }

  const isUp = (command: RunningCommand) =>
    waitFor(() => command.stdout().includes('ready'), { what: 'the program to be up' });

  it('ends as by SIGTERM when npm was ended, whose shell forwards no signal', async () => {
    const command = npmRun(`orchestrator run 'a b' 2>&1`);
    await isUp(command);
    command.kill('SIGTERM');
    await command.finished;
    await waitFor(() => findLeftovers(marker).length === 0, { what: 'the program to be gone' });
  });

  it.each(['orchestrator run & sleep 0.1', 'nohup orchestrator run & sleep 0.1'])(
    'continues after: %s',
    { tags: ['nightly'] },
    async (script) => {
      const command = npmRun(script);
      await isUp(command);
      await waitFor(() => findLeftovers(marker).length === 1, { what: 'npm and its shell to be gone' });
      // Longer than it takes to detect that the starter is gone.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(findLeftovers(marker)).toHaveLength(1);
      killLeftovers(marker);
      await command.finished;
    },
  );
});
