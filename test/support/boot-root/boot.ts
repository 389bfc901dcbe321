/** Runs a user-data script as cloud-init would, in a copy of the Debian root with a private network. */
import { writeFileSync } from 'node:fs';
import { runCommand } from '../processes.ts';
import { tempDir } from '../temp-dir.ts';

export interface BootPlan {
  /** The root to start from; it is not changed. */
  root: string;
  /** The archive in the bucket; null: the bucket answers 403, as S3 does for an expired URL. */
  archive: string | null;
  /** The hash in the user data. */
  sha256: string;
  /** From now. */
  powerOffInMs: number;
  /** Shell commands that run as root in the copy before the boot: what the image adds or lacks. */
  prepare?: string;
  /** Program that the image has as `node`; default: none. */
  imageNode?: string;
}

export interface Boot {
  exitCode: number | null;
  /** Everything written to /dev/console. */
  console: string;
  /** Each call of systemctl, in order. */
  systemctl: string[];
  /** Files in /etc/systemd/system, by name. */
  units: Record<string, string>;
  /** Files in /opt/crawlfleet. */
  installed: string[];
  /** The hello that the main server received, and the process that sent it; null when none arrived. */
  hello: { instanceId: string; macOk: boolean; program: string; user: string; afterMs: number } | null;
  /** Output and exit code of `systemd-analyze verify` for the units. */
  verified: { exitCode: number | null; output: string };
  /** Requests to the metadata service. */
  asked: string[];
}

/** Resolves when the machine has sent its hello or has called poweroff. */
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
