/** A private MariaDB with its own data directory, socket and port, removed however the test run ends. */
import type { ChildProcess } from 'node:child_process';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createConnection } from 'mysql2/promise';
import type { ServerPrograms } from './find-server.ts';
import { freePort } from '../free-port.ts';

const run = promisify(execFile);
const START_MS = 60_000;

export interface PrivateServer {
  adminUrl: string;
  stop(): Promise<void>;
}

/**
 * A shell is the parent of the server: when our end of its pipe closes, even because this process was killed, it stops the
 * server and removes the directory.
 */
const GUARD = `
dir=$1; shift
exec 3<&0
"$@" </dev/null &
server=$!
(cat <&3 >/dev/null; kill "$server" 2>/dev/null) &
wait "$server"
status=$?
rm -rf "$dir"
exit "$status"
`;

/** Resolves when the server answers. Throws with the end of the server's log when it does not start. */
export async function startPrivateServer(programs: ServerPrograms): Promise<PrivateServer> {
  let last: unknown;
  // Another program may take the port between our check and the server's start.
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      return await startOnce(programs);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

async function startOnce(programs: ServerPrograms): Promise<PrivateServer> {
  const dir = await mkdtemp(join(tmpdir(), 'crawlfleet-mariadb-'));
  const data = join(dir, 'data');
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  const install = ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'];
  try {
    await run(programs.installDb, [...install, ...user], { timeout: START_MS, maxBuffer: 10_000_000 });
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
  const password = randomBytes(12).toString('hex');
  const init = join(dir, 'init.sql');
  await writeFile(
    init,
    `CREATE USER 'crawlfleet'@'%' IDENTIFIED BY '${password}';\nGRANT ALL ON *.* TO 'crawlfleet'@'%' WITH GRANT OPTION;\n`,
    { mode: 0o600 },
  );
  const port = await freePort();
  const server = [
    programs.mariadbd,
    '--no-defaults',
    ...user,
    `--datadir=${data}`,
    `--socket=${join(dir, 'server.sock')}`,
    `--pid-file=${join(dir, 'server.pid')}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--skip-name-resolve',
    `--init-file=${init}`,
    '--skip-log-bin',
    // Tests need transactions, not durable disks.
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-flush-method=nosync',
    '--skip-innodb-doublewrite',
    '--innodb-buffer-pool-size=128M',
    '--innodb-log-file-size=64M',
    '--performance-schema=OFF',
    '--max-connections=400',
    '--max-allowed-packet=16M',
  ];
  const child = spawn('/bin/sh', ['-c', GUARD, 'sh', dir, ...server], {
    stdio: ['pipe', 'ignore', 'pipe'],
    // Ctrl-C must reach only the tests; they (or the closed pipe) stop the server.
    detached: true,
  });
  const log = collectTail(child);
  const adminUrl = `mysql://crawlfleet:${password}@127.0.0.1:${port}/`;
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.stdin?.end();
    await gone;
  };
  try {
    await untilAnswering(adminUrl, child);
  } catch (error) {
    await stop();
    throw new Error(`the private MariaDB did not start:\n${log()}`, { cause: error });
  }
  return { adminUrl, stop };
}

async function untilAnswering(adminUrl: string, child: ChildProcess): Promise<void> {
  const giveUpAt = performance.now() + START_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`it ended with status ${child.exitCode}`);
    try {
      const connection = await createConnection({ uri: adminUrl, connectTimeout: 2_000 });
      await connection.end();
      return;
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await delay(50);
    }
  }
}

function collectTail(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    text = (text + chunk.toString('utf8')).slice(-4_000);
  });
  return () => text;
}
