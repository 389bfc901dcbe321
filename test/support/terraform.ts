/**
 * Terraform with its AWS provider, where both are available: from a local folder of providers, or from the registry.
 */
import { globSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from './find-program.ts';
import { runCommand } from './processes.ts';

const PROVIDER = 'registry.terraform.io/hashicorp/aws';
const FOLDERS = [
  `${homedir()}/.terraform.d/plugins`,
  '/usr/local/share/terraform/plugins',
  '/usr/share/terraform/plugins',
  '/opt/*',
];

/** Message where it is not available. */
export const NO_TERRAFORM =
  'terraform or its AWS provider is not on this machine: its checks were skipped. Install terraform, and let it reach ' +
  'its registry or name a folder with providers in CRAWLFLEET_TERRAFORM_PLUGINS.';

/** Runs terraform in the folder; null where `terraform init` fails. */
export async function initTerraform(
  folder: string,
  environment: Record<string, string> = {},
): Promise<((...args: string[]) => ReturnType<typeof runCommand>) | null> {
  const terraform = await findProgram('terraform');
  if (terraform === null) return null;
  // A user setting that names a missing file only prints a warning, on each command.
  const config = join(folder, 'terraform.rc');
  writeFileSync(config, 'disable_checkpoint = true\n');
  const env = { TF_IN_AUTOMATION: '1', TF_CLI_CONFIG_FILE: config, ...environment };
  const run = (...args: string[]): ReturnType<typeof runCommand> =>
    runCommand(terraform, args, { cwd: folder, env, timeoutMs: 170_000 });
  const plugins = pluginFolder();
  const { exitCode } = await run('init', '-input=false', '-no-color', ...(plugins ? [`-plugin-dir=${plugins}`] : []));
  return exitCode === 0 ? run : null;
}

function pluginFolder(): string | null {
  const named = process.env.CRAWLFLEET_TERRAFORM_PLUGINS;
  if (named) return named;
  const found = globSync(FOLDERS.map((folder) => `${folder}/${PROVIDER}`))[0];
  return found === undefined ? null : found.slice(0, -PROVIDER.length - 1);
}
