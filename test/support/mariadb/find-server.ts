/** Finds the MariaDB programs on the machine; installs them as root on Debian and Ubuntu. */
import { installDebianPackage } from '../debian-package.ts';
import { findProgram } from '../find-program.ts';

/** Folders outside the usual PATH where distributions put servers. */
const EXTRA_DIRS = ['/usr/sbin', '/usr/local/sbin', '/usr/bin', '/usr/local/bin', '/usr/libexec', '/opt/homebrew/bin'];

export interface ServerPrograms {
  mariadbd: string;
  installDb: string;
}

/** The programs, or null when one of them is missing. */
export async function findServer(): Promise<ServerPrograms | null> {
  const mariadbd = await findProgram('mariadbd', EXTRA_DIRS);
  const installDb =
    (await findProgram('mariadb-install-db', EXTRA_DIRS)) ?? (await findProgram('mysql_install_db', EXTRA_DIRS));
  return mariadbd && installDb ? { mariadbd, installDb } : null;
}

/** Installs the package where no user has to confirm it; null elsewhere. */
export async function installServer(): Promise<ServerPrograms | null> {
  return (await installDebianPackage('mariadb-server')) ? findServer() : null;
}
