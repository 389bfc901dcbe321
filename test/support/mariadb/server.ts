/**
 * A private MariaDB with its own data, socket and port. It can be killed, frozen and started again on the same data,
 * and is removed however the test run ends.
 */
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createConnection } from 'mysql2/promise';
import { findServer, installServer } from './find-server.ts';
import { waitFor } from '../processes.ts';
import { freePort, QUIET_ADDRESS } from '../free-port.ts';

const run = promisify(execFile);
const START_MS = 60_000;

/** Options of a shared server whose data need not survive a power cut. */
export const QUICK = [
  '--innodb-flush-log-at-trx-commit=2',
  '--skip-innodb-doublewrite',
  '--innodb-buffer-pool-size=128M',
  '--innodb-log-file-size=64M',
  '--max-connections=400',
];

export interface DatabaseServer {
  /** `address:port` */
  host: string;
  /** URL of a database on this server, through `host` if that differs from the server's own. */
  url(database: string, host?: string): string;
  query(database: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** Resolves when the server answers again. */
  start(): Promise<void>;
  /** Stops the server permanently and removes its data. */
  stop(): Promise<void>;
}

/**
 * The shell supervises the server: each line on its pipe starts one. When our end of the pipe closes, even because we
 * were killed, it ends the server, frozen or not, and removes its data.
 */
const GUARD = `
dir=$1; data=$2; shift 2
while read -r _; do
  "$@" </dev/null &
  server=$!
  echo "$server" >"$dir/pid"
done
kill -9 "$server"
wait
rm -rf "$dir" "$data"
`;

export interface ServerOptions {
  /** Folder for the data, such as that of a small disk. Default: beside the server's other files. */
  dataIn?: string;
  /** Further options of `mariadbd`. */
  options?: string[];
}

/** Installs if necessary and starts the server. Throws with the end of its log. */
export async function startDatabaseServer(wanted: ServerOptions = {}): Promise<DatabaseServer> {
  const programs = (await findServer()) ?? (await installServer());
  if (!programs) throw new Error('these tests need MariaDB 10.6 or newer: apt-get install mariadb-server');
  const dir = await mkdtemp(join(tmpdir(), 'crawlfleet-mariadb-'));
  const data = join(wanted.dataIn ?? dir, 'data');
  // A server removes every temporary table in its folder when it starts. One that had this table open would crash.
  const temporary = join(dir, 'tmp');
  await mkdir(temporary);
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  const folders = [`--datadir=${data}`, `--tmpdir=${temporary}`];
  const install = ['--no-defaults', ...folders, '--auth-root-authentication-method=normal', '--skip-test-db'];
  try {
    await run(programs.installDb, [...install, ...user], { timeout: START_MS, maxBuffer: 10_000_000 });
  } catch (error) {
    await Promise.all([dir, data].map((path) => rm(path, { recursive: true, force: true })));
    throw error;
  }
  const password = randomBytes(12).toString('hex');
  const init = join(dir, 'init.sql');
  await writeFile(
    init,
    `CREATE USER IF NOT EXISTS 'crawlfleet'@'%' IDENTIFIED BY '${password}';\nGRANT ALL ON *.* TO 'crawlfleet'@'%' WITH GRANT OPTION;\n`,
    { mode: 0o600 },
  );
  const port = await freePort(QUIET_ADDRESS);
  const host = `${QUIET_ADDRESS}:${port}`;
  const args = [
    '--no-defaults',
    ...user,
    ...folders,
    `--socket=${join(dir, 'server.sock')}`,
    `--pid-file=${join(dir, 'server.pid')}`,
    `--log-error=${join(dir, 'server.log')}`,
    `--port=${port}`,
    `--bind-address=${QUIET_ADDRESS}`,
    '--skip-name-resolve',
    `--init-file=${init}`,
    '--skip-log-bin',
    // A killed process leaves its written pages to the kernel; only a power cut would lose them.
    '--innodb-flush-method=nosync',
    '--innodb-buffer-pool-size=64M',
    '--innodb-log-file-size=16M',
    '--performance-schema=OFF',
    ...(wanted.options ?? []),
  ];
  const url = (database: string, by = host): string => `mysql://crawlfleet:${password}@${by}/${database}`;
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', dir, data, programs.mariadbd, ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // Ctrl-C must reach us first.
    detached: true,
  });
  const pid = (): number => Number(readFileSync(join(dir, 'pid'), 'utf8'));
  const start = async (): Promise<void> => {
    guard.stdin.write('start\n');
    await waitFor(() => answers(url('')), { what: 'MariaDB to start', timeoutMs: START_MS }).catch((error: unknown) => {
      throw new Error(`MariaDB did not start:\n${logTail(dir)}`, { cause: error });
    });
  };
  const stop = async (): Promise<void> => {
    const gone = once(guard, 'exit');
    guard.stdin.end();
    await gone;
    // The server may have been writing while the guard removed its files.
    await Promise.all([dir, data].map((path) => rm(path, { recursive: true, force: true })));
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    host,
    url,
    async query(database, sql, values = []) {
      const connection = await createConnection({ uri: url(database), timezone: 'Z', connectTimeout: 5_000 });
      try {
        const [rows] = await connection.query(sql, values);
        return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
      } finally {
        await connection.end();
      }
    },
    signal(signal) {
      process.kill(pid(), signal);
    },
    async kill() {
      process.kill(pid(), 'SIGKILL');
      await waitFor(() => isDead(pid()), { what: 'MariaDB to die' });
    },
    start,
    stop,
  };
}

async function answers(url: string): Promise<boolean> {
  const connection = await createConnection({ uri: url, connectTimeout: 2_000 });
  await connection.end();
  return true;
}

/** A killed process stays a zombie until the guard reaps it. */
function isDead(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    return true;
  }
}

function logTail(dir: string): string {
  try {
    return readFileSync(join(dir, 'server.log'), 'utf8').slice(-3_000);
  } catch {
    return '(it wrote no log)';
  }
}
