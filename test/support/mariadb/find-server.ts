/** Finds the MariaDB programs on the machine; as root on Debian and Ubuntu it installs them. */
import { installDebianPackage } from '../debian-package.ts';
import { findProgram } from '../find-program.ts';

/** Where distributions put servers that are on nobody's PATH. */
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

/** Installs the package where that is possible without asking; null elsewhere. */
export async function installServer(): Promise<ServerPrograms | null> {
  return (await installDebianPackage('mariadb-server')) ? findServer() : null;
}
