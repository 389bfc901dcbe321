/** The root file system of a small Debian, built once per machine, in which tests run an instance's user data. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installDebianPackage } from '../debian-package.ts';
import { exists, findProgram } from '../find-program.ts';
import { runCommand } from '../processes.ts';

const SUITE = 'bookworm';
/** Increment when the packages below change. */
const EDITION = 1;
/** Packages that cloud images have and a minimal Debian lacks, and the linters for scripts and units. */
const PACKAGES = ['curl', 'ca-certificates', 'cloud-init', 'systemd', 'shellcheck'];

/** Message where the root cannot be built. */
export const NO_ROOT =
  'user data was not executed: that needs Linux, root, unshare with mount and network namespaces, ip and debootstrap ' +
  '(on Debian and Ubuntu: apt-get install debootstrap iproute2 util-linux) and a Debian mirror.';

/** The folder of the root and of other files that tests cache; null where it cannot be built. */
export async function debianRoot(): Promise<{ root: string; cache: string } | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null;
  for (const program of ['debootstrap', 'ip', 'unshare', 'flock']) {
    const isThere = (await findProgram(program)) ?? (await exists(`/usr/sbin/${program}`));
    if (!isThere && !(await installDebianPackage(PACKAGE_OF[program]!))) return null;
  }
  const probe = await runCommand('unshare', ['-mpnf', '--mount-proc', 'ip', 'link', 'set', 'lo', 'up']);
  if (probe.exitCode !== 0) return null;
  const cache = join(tmpdir(), `crawlfleet-test-root-${SUITE}-${EDITION}`);
  const root = join(cache, 'root');
  await mkdir(cache, { recursive: true, mode: 0o700 });
  // The lock lets concurrent test commands build it only once.
  const maker = [join(cache, 'lock'), process.execPath, import.meta.filename, cache];
  const { exitCode, stderr } = await runCommand('flock', maker, { timeoutMs: 900_000 });
  if (exitCode !== 0) console.error(`no Debian root could be made in ${cache}:\n${stderr}`);
  return (await exists(join(cache, 'made'))) ? { root, cache } : null;
}

const PACKAGE_OF: Record<string, string> = {
  debootstrap: 'debootstrap',
  ip: 'iproute2',
  unshare: 'util-linux',
  flock: 'util-linux',
};

async function make(cache: string): Promise<void> {
  if (await exists(join(cache, 'made'))) return;
  const unfinished = join(cache, 'unfinished');
  await rm(unfinished, { recursive: true, force: true });
  console.log(`making a Debian ${SUITE} root in ${cache} (a minute or two, this happens once) …`);
  const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;
  const env = { PATH, DEBIAN_FRONTEND: 'noninteractive' };
  await run('debootstrap', ['--variant=minbase', SUITE, unfinished], env);
  // Not with debootstrap, which does not resolve virtual packages.
  const apt = ['apt-get', '-qq', '-o', 'Acquire::Retries=3'];
  await run('chroot', [unfinished, ...apt, 'update'], env);
  await run('chroot', [unfinished, ...apt, 'install', '-y', '--no-install-recommends', ...PACKAGES], env);
  await rm(join(cache, 'root'), { recursive: true, force: true });
  await rename(unfinished, join(cache, 'root'));
  await writeFile(join(cache, 'made'), '');
}

async function run(program: string, args: string[], env: Record<string, string>): Promise<void> {
  const { exitCode, stdout, stderr } = await runCommand(program, args, { timeoutMs: 800_000, env });
  if (exitCode !== 0)
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout.slice(-2_000)}\n${stderr.slice(-2_000)}`);
}

if (process.argv[1] === import.meta.filename) await make(process.argv[2]!);
