/** Runs a user-data script as cloud-init would, in a copy of the Debian root with a network of its own. */
import { writeFileSync } from 'node:fs';
import { runCommand } from '../processes.ts';
import { tempDir } from '../temp-dir.ts';

export interface BootPlan {
  /** The root to start from; it is not changed. */
  root: string;
  /** The archive that the bucket has; null: it answers 403 as S3 does when a URL has run out. */
  archive: string | null;
  /** The hash that the user data names. */
  sha256: string;
  /** From now. */
  powerOffInMs: number;
  /** Run as root in the copy before the machine boots; what the image has more, or less. */
  prepare?: string;
  /** Program that the image has as `node`; left out: none. */
  imageNode?: string;
}

export interface Boot {
  exitCode: number | null;
  /** What /dev/console was sent. */
  console: string;
  /** Each call of systemctl, in order. */
  systemctl: string[];
  /** Files in /etc/systemd/system, by name. */
  units: Record<string, string>;
  /** Files in /opt/crawlfleet. */
  installed: string[];
  /** What the main server was told, and by which process; null when nobody said hello. */
  hello: { instanceId: string; macOk: boolean; program: string; user: string; afterMs: number } | null;
  /** What systemd-analyze verify says of the units, with its exit code. */
  verified: { exitCode: number | null; output: string };
  /** Requests to the metadata service. */
  asked: string[];
}

/** Resolves when the machine has said hello or was told to power off. */
export async function bootMachine(plan: BootPlan): Promise<Boot> {
  using folder = tempDir('crawlfleet-boot-');
  const file = folder.file('plan.json');
  writeFileSync(file, JSON.stringify({ ...plan, folder: folder.path }));
  const args = ['-mpnf', '--mount-proc', '--kill-child', process.execPath];
  const machine = new URL('machine.ts', import.meta.url).pathname;
  const { exitCode, stdout, stderr } = await runCommand('unshare', [...args, machine, file], { timeoutMs: 120_000 });
  if (exitCode !== 0) throw new Error(`the machine could not be played:\n${stdout}\n${stderr}`);
  return JSON.parse(stdout) as Boot;
}
