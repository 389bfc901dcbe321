/**
 * The sandbox used by third-party clients: aws-cli, boto3 and Terraform's AWS provider. They request more than our
 * adapters do and validate more strictly; the sandbox has what they need for their sake.
 *
 * @module-tag nightly
 */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findProgram } from '../../support/find-program.ts';
import { runCommand } from '../../support/processes.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox/start-sandbox.ts';
import { type TempDir, tempDir } from '../../support/temp-dir.ts';

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** The provider's folder on machines without a registry: a filesystem mirror, as Terraform calls it. */
const MIRROR = process.env.CRAWLFLEET_TERRAFORM_MIRROR ?? '/opt/tf-plugins';

const AWS_CLI = await findProgram('aws');
const PYTHON = await pythonWithBoto3();
const TERRAFORM = existsSync(`${MIRROR}/registry.terraform.io/hashicorp/aws`) ? await findProgram('terraform') : null;

if (AWS_CLI === null) sayLeftOut('aws-cli', 'pip install awscli');
if (PYTHON === null) sayLeftOut('boto3', 'pip install boto3');
if (TERRAFORM === null) {
  const hint = `terraform providers mirror ${MIRROR}, in a folder with test/contract/clients/fleet.tf (or name another folder in CRAWLFLEET_TERRAFORM_MIRROR)`;
  sayLeftOut("Terraform's AWS provider", hint);
}

function sayLeftOut(what: string, how: string): void {
  console.warn(`\n*** LEFT OUT: the sandbox read by ${what}, which is not on this machine. Get it with: ${how}\n`);
}

async function pythonWithBoto3(): Promise<string | null> {
  const python = await findProgram('python3');
  if (python === null) return null;
  return promisify(execFile)(python, ['-c', 'import boto3']).then(
    () => python,
    () => null,
  );
}

describe('the sandbox, read by', () => {
  let sandbox: TestSandbox;
  let folder: TempDir;

  beforeEach(async () => {
    sandbox = await startSandbox();
    folder = tempDir('crawlfleet-clients-');
  });
  afterEach(async () => {
    await sandbox?.stop();
    folder?.remove();
  });

  /** Nothing of the user's own: neither keys nor profiles nor a region. */
  const environment = () => ({
    HOME: folder.path,
    AWS_ENDPOINT_URL: sandbox.endpoint,
    AWS_ACCESS_KEY_ID: 'any',
    AWS_SECRET_ACCESS_KEY: 'any',
    AWS_SESSION_TOKEN: undefined,
    AWS_PROFILE: undefined,
    AWS_REGION: 'ap-northeast-1',
    // Old versions of aws-cli know only this variable.
    AWS_DEFAULT_REGION: 'ap-northeast-1',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_PAGER: '',
    // pyenv keeps its versions in the user's home.
    PYENV_ROOT: process.env.PYENV_ROOT ?? `${process.env.HOME}/.pyenv`,
  });

  async function expectToWork(file: string, args: string[], more: Record<string, string> = {}): Promise<string> {
    const options = { cwd: folder.path, env: { ...environment(), ...more }, timeoutMs: 300_000 };
    const result = await runCommand(file, args, options);
    expect(result.exitCode, `${result.stdout}\n${result.stderr}`).toBe(0);
    return result.stdout;
  }

  async function expectNothingAlive(launched: number): Promise<void> {
    const instances = await sandbox.instances();
    expect(instances.map((i) => i.state)).toEqual(Array.from({ length: launched }, () => 'terminated'));
  }

  it.skipIf(AWS_CLI === null)(
    'aws-cli: launches, tags, lists, registers, stores and terminates',
    { timeout: 300_000 },
    async () => {
      expect(await expectToWork('bash', [here('aws-cli.sh'), folder.path])).toContain('all done with i-');
      await expectNothingAlive(1);
    },
  );

  it.skipIf(PYTHON === null)(
    'boto3: launches, tags, lists, registers, stores and terminates',
    { timeout: 300_000 },
    async () => {
      expect(await expectToWork(PYTHON!, [here('boto3-client.py'), sandbox.endpoint])).toContain('all done with i-');
      await expectNothingAlive(3);
    },
  );

  it.skipIf(TERRAFORM === null)(
    'Terraform: applies, finds nothing to change, and destroys',
    { timeout: 900_000 },
    async () => {
      copyFileSync(here('fleet.tf'), folder.file('main.tf'));
      const config = folder.file('terraform.tfrc');
      writeFileSync(config, `provider_installation {\n  filesystem_mirror { path = "${MIRROR}" }\n}\n`);
      const more = { TF_CLI_CONFIG_FILE: config, TF_VAR_endpoint: sandbox.endpoint, CHECKPOINT_DISABLE: '1' };
      const terraform = (...args: string[]) => expectToWork(TERRAFORM!, [...args, '-no-color', '-input=false'], more);
      await terraform('init');
      expect(await terraform('apply', '-auto-approve')).toContain('9 added');
      // With -detailed-exitcode, 2 would mean: there is something to change.
      await terraform('plan', '-detailed-exitcode');
      expect(await terraform('destroy', '-auto-approve')).toContain('9 destroyed');
      await expectNothingAlive(2);
    },
  );
});
