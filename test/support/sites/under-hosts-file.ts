/** Runs a program with another /etc/hosts: in a mount namespace of its own, so that other programs keep theirs. */
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { tempDir } from '../temp-dir.ts';

export interface HostsNamespace {
  /** Put before the program and its arguments: `startCommand(prefix[0], [...prefix.slice(1), program, ...])`. */
  prefix: readonly [file: string, ...args: string[]];
  /** Programs that run already keep their files. */
  remove(): void;
}

const HOSTS = '/etc/hosts';
const RESOLV_CONF = '/etc/resolv.conf';

/** Mounts pairs of files, up to `--`, then becomes the program. */
const SCRIPT = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 125; shift 2; done; shift; exec "$@"';

/**
 * Null where this user may not do that. The program is root in its namespace, as far as its user's rights reach.
 *
 * @param hosts the text of /etc/hosts @param resolvConf the text of /etc/resolv.conf; null leaves the machine's
 */
export function underHostsFile(hosts: string, resolvConf: string | null = null): HostsNamespace | null {
  if (process.platform !== 'linux') return null;
  const folder = tempDir('crawlfleet-hosts-');
  const mounts = [mountOf(folder.file('hosts'), HOSTS, hosts)];
  if (resolvConf !== null) mounts.push(mountOf(folder.file('resolv.conf'), RESOLV_CONF, resolvConf));
  const isRoot = process.getuid?.() === 0;
  const namespace = ['--mount', '--propagation', 'private', ...(isRoot ? [] : ['--user', '--map-root-user'])];
  const prefix = ['unshare', ...namespace, 'sh', '-c', SCRIPT, 'sh', ...mounts.flat(), '--'] as const;
  const [file, ...args] = prefix;
  const isPossible =
    mounts.every(([, target]) => existsSync(target)) &&
    spawnSync(file, [...args, 'true'], { stdio: 'ignore' }).status === 0;
  if (isPossible) return { prefix: [file, ...args], remove: () => folder.remove() };
  folder.remove();
  return null;
}

function mountOf(file: string, target: string, text: string): [file: string, target: string] {
  // Whoever the program becomes may read it.
  writeFileSync(file, text, { mode: 0o644 });
  return [file, target];
}
