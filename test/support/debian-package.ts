/** Installs packages for the tests where no user has to confirm it: as root on Debian and Ubuntu. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { exists, findProgram } from './find-program.ts';

/** Serializes apt across test commands and across the projects of one command. */
const TURN = '/var/lock/crawlfleet-tests-apt.lock';
const TURN_TIMEOUT_S = 900;
const INSTALL_TIMEOUT_S = 1_200;

// A package may start its own server on a port that is in use here; Debian consults policy-rc.d first. The script adds
// and removes that file while it holds the lock, so that no other installation sees it.
//
// DPkg::Lock::Timeout only covers dpkg's locks. A lock on apt's lists or archives makes apt fail immediately, and a
// machine that has just booted holds them for minutes while it updates itself.
const SCRIPT = `
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
until=$(($(date +%s) + 300))
apt() {
  while ! said=$(apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -qq "$@" 2>&1); do
    case "$said" in
      *'Could not get lock'*) if [ "$(date +%s)" -lt "$until" ]; then sleep 3; continue; fi ;;
    esac
    echo "$said" >&2
    return 1
  done
}
install() { apt update && apt install -y --no-install-recommends "$1"; }
# An update that failed to fetch a list still succeeds, and the old list may name a package that no longer exists.
install "$1" || { sleep 15; install "$1"; }
`;

/**
 * True when the package was installed; false on a machine that tests may not change, or when apt failed (its error is
 * printed).
 */
export async function installDebianPackage(name: string): Promise<boolean> {
  if (process.getuid?.() !== 0 || !(await findProgram('apt-get')) || !(await exists('/etc/debian_version')))
    return false;
  console.log(`${name} is not installed: installing the package (this happens once) …`);
  try {
    await promisify(execFile)('flock', ['--timeout', String(TURN_TIMEOUT_S), TURN, 'sh', '-c', SCRIPT, 'sh', name], {
      // The script matches apt's message about locks.
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
      timeout: (TURN_TIMEOUT_S + INSTALL_TIMEOUT_S) * 1_000,
      maxBuffer: 50_000_000,
    });
    return true;
  } catch (error) {
    console.error(`apt-get could not install ${name}: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
}
