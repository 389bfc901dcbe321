#!/usr/bin/env node
// Starts the program under a suitable Node. Plain JavaScript, because the Node that reads this file may be too old for
// the rest: then the one installed by `npm ci` (the npm package `node`) takes over.
import { spawn } from 'node:child_process';
import { constants, existsSync, readFileSync, readlinkSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { dirname, extname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Required by undici; running TypeScript directly needs 22.18. */
const MINIMUM = [22, 19];
/** Set for the process that the launcher starts, which removes it. */
const LAUNCHED = 'CRAWLFLEET_LAUNCHED';

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > MINIMUM[0] || (major === MINIMUM[0] && minor >= MINIMUM[1]);
}

/** The nearest node_modules/node/bin/node above this file; null when there is none. */
function findInstalledNode() {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const file = join(folder, 'node_modules', 'node', 'bin', 'node');
    if (existsSync(file)) return file;
    if (folder === dirname(folder)) return null;
  }
}

/** Runs this file under that Node. The two behave as one process, including signals, exit code and sudden death. */
function runUnder(node) {
  const child = spawn(node, process.argv.slice(1), {
    // The fourth is a channel through which the child detects that this process is gone.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    // Its own process group: the terminal sends Ctrl-C only to us and we forward it, so that the child gets it once.
    detached: true,
    env: { ...process.env, [LAUNCHED]: '1' },
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGWINCH'];
  const forward = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, forward);
  child.on('error', (error) => {
    process.stderr.write(`orchestrator: cannot start ${node}: ${error.message}\n  Run npm ci again.\n`);
    process.exitCode = 4;
  });
  child.on('exit', (code, signal) => {
    for (const each of signals) process.off(each, forward);
    if (signal) process.kill(process.pid, signal);
    else process.exitCode = code;
  });
}

function dieWithLauncher() {
  delete process.env[LAUNCHED];
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  // The listener alone must not keep the program alive.
  process.channel.unref();
}

/** Set for the program when it was started by `nohup`. */
const NOHUP = 'CRAWLFLEET_NOHUP';

/**
 * Node restores the default of every signal at startup, including the SIGHUP that nohup made it ignore. nohup can be
 * detected by its name in the variable that bash and zsh set for a command, and by a write-only stdin in place of a
 * terminal.
 */
function isUnderNohup() {
  if (/(^|\/)nohup$/.test(process.env._ ?? '')) return true;
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync('/proc/self/fdinfo/0', 'utf8'))?.[1] ?? '0';
    return readlinkSync('/proc/self/fd/0') === '/dev/null' && (parseInt(flags, 8) & 3) === constants.O_WRONLY;
  } catch {
    // Not Linux, or no stdin.
    return false;
  }
}

/** Set for the program when it was started by npx: what it advises then names npx, too. */
const NPX = 'CRAWLFLEET_NPX';

/** How often to check whether npm is still running. */
const LOOK_MS = 500;
/** An npm script or npx command that runs this program. */
const OWN_COMMAND = /^\s*(exec\s+)?'?(\S*\/)?(crawlfleet|orchestrator)'?(\s|$)/;
/** An `&` that sends the program to the background, unlike `&&`, `2>&1` and `&> file`. */
const BACKGROUND = /(^|[^&>])&(?![&>])/;

/**
 * `npx crawlfleet` and npm scripts put a shell between npm and this program that forwards no signals, but ending npm
 * must end the program. So it ends as on SIGTERM when its parent process is gone. Only if npm started it in the
 * foreground: a program sent to the background, or started by `nohup`, `setsid`, cron, systemd or another script, must
 * outlive its parent.
 */
function endWithNpm() {
  const script = process.env.npm_lifecycle_script;
  // npm did not start this program's child processes.
  delete process.env.npm_lifecycle_script;
  if (process.env.npm_command === 'exec' && OWN_COMMAND.test(script ?? '')) process.env[NPX] = '1';
  if (process.env[NOHUP] || script === undefined || !OWN_COMMAND.test(script) || BACKGROUND.test(script)) return;
  const starter = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === starter) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_MS);
  timer.unref();
}

/**
 * Keeps what V8 has compiled from one start to the next: a start takes less time, and 40 MB less memory, which V8 needs
 * to compile the EC2 client. In the user's own folder, because who can write there can run code as this user. Without
 * such a folder the program starts as it did the first time.
 */
function keepCompiled() {
  try {
    const { XDG_CACHE_HOME } = process.env;
    const folder = XDG_CACHE_HOME && isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
    if (isAbsolute(folder)) module.enableCompileCache(join(folder, 'crawlfleet'));
  } catch {
    // A user ID without an entry in /etc/passwd has no home.
  }
}

async function start() {
  const source = new URL('../orchestrator/main.ts', import.meta.url);
  const built = new URL('../dist/orchestrator/main.js', import.meta.url);
  // Node refuses to run TypeScript below node_modules, where only the built form runs.
  const inPackage = fileURLToPath(import.meta.url)
    .split(/[\\/]/)
    .includes('node_modules');
  const program = inPackage || !existsSync(source) ? built : source;
  // Before the rest is compiled: V8 rejects what it has kept under other flags.
  await import(new URL(`cli/heap-limits${extname(program.pathname)}`, program).href);
  keepCompiled();
  await import(program.href);
}

if (isUnderNohup()) {
  process.env[NOHUP] = '1';
  process.on('SIGHUP', () => {});
}
endWithNpm();
if (isNewEnough(process.versions.node)) {
  if (process.env[LAUNCHED] && process.connected) dieWithLauncher();
  await start();
} else {
  const node = findInstalledNode();
  if (node) {
    runUnder(node);
  } else {
    process.stderr.write(
      `orchestrator: this is Node ${process.versions.node}; it needs ${MINIMUM.join('.')} or newer\n` +
        '  Install a newer Node (nodejs.org), or run npm ci in the checkout, which brings one along.\n',
    );
    process.exitCode = 4;
  }
}
