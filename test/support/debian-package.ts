/** Installs packages for the tests where that is possible without asking: as root on Debian and Ubuntu. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { exists, findProgram } from './find-program.ts';

/** Two test commands at once, or two projects of one, must not run apt at the same time. */
const TURN = '/var/lock/crawlfleet-tests-apt.lock';
const TURN_TIMEOUT_S = 900;
const INSTALL_TIMEOUT_S = 1_200;

// A package may start a server of its own, on the port of one that runs here; Debian asks policy-rc.d first. It is put
// there and taken away within the turn, so that no other installation finds it half-way.
//
// Of apt's locks only dpkg's are waited for by DPkg::Lock::Timeout. Those of its lists and its archives end apt at once, and
// a machine that has just booted holds them for minutes while it updates itself.
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
# An update that could not fetch a list succeeds all the same, and what it left may name a package that is not there any more.
install "$1" || { sleep 15; install "$1"; }
`;

/** True when the package was installed; false where this machine is not ours to change, or apt failed (it says why). */
export async function installDebianPackage(name: string): Promise<boolean> {
  if (process.getuid?.() !== 0 || !(await findProgram('apt-get')) || !(await exists('/etc/debian_version')))
    return false;
  console.log(`${name} is not installed: installing the package (this happens once) …`);
  try {
    await promisify(execFile)('flock', ['--timeout', String(TURN_TIMEOUT_S), TURN, 'sh', '-c', SCRIPT, 'sh', name], {
      // What apt says of its locks is read.
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
