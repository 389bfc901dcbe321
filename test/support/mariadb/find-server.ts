/** Finds the MariaDB programs on the machine; as root on Debian and Ubuntu it installs them. */
import { execFile } from 'node:child_process';
import { access, constants, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where distributions put servers that are on nobody's PATH. */
const EXTRA_DIRS = ['/usr/sbin', '/usr/local/sbin', '/usr/bin', '/usr/local/bin', '/usr/libexec', '/opt/homebrew/bin'];
const POLICY = '/usr/sbin/policy-rc.d';

export interface ServerPrograms {
  mariadbd: string;
  installDb: string;
}

/** The programs, or null when one of them is missing. */
export async function findServer(): Promise<ServerPrograms | null> {
  const mariadbd = await findProgram('mariadbd');
  const installDb = (await findProgram('mariadb-install-db')) ?? (await findProgram('mysql_install_db'));
  return mariadbd && installDb ? { mariadbd, installDb } : null;
}

/** Installs the package where that is possible without asking; null elsewhere. */
export async function installServer(): Promise<ServerPrograms | null> {
  if (process.getuid?.() !== 0 || !(await findProgram('apt-get')) || !(await exists('/etc/debian_version')))
    return null;
  console.log('MariaDB is not installed: installing the package mariadb-server (this happens once) …');
  const ownPolicy = !(await exists(POLICY));
  // The package would start a server of its own on port 3306; Debian asks this file first.
  if (ownPolicy) await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    const options = {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      timeout: 300_000,
      maxBuffer: 50_000_000,
    };
    const wait = ['-o', 'DPkg::Lock::Timeout=300', '-qq'];
    await run('apt-get', [...wait, 'update'], options);
    await run('apt-get', [...wait, 'install', '-y', '--no-install-recommends', 'mariadb-server'], options);
  } catch (error) {
    console.error(
      `apt-get could not install mariadb-server: ${error instanceof Error ? error.message : String(error)}`,
    );
    return null;
  } finally {
    if (ownPolicy) await rm(POLICY, { force: true });
  }
  return findServer();
}

async function findProgram(name: string): Promise<string | null> {
  for (const dir of [...(process.env.PATH ?? '').split(delimiter), ...EXTRA_DIRS]) {
    const path = join(dir, name);
    if (dir !== '' && (await exists(path, constants.X_OK))) return path;
  }
  return null;
}

function exists(path: string, mode = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
