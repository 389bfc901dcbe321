/** `orchestrator setup`: prints what the account needs, as Terraform. Makes no call. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { shellWord } from '../../../shared/domain/shell-word.ts';
import { loadConfig } from '../../core/config/load-config.ts';
import type { ConfigSource } from '../../core/feature.ts';
import type { Output } from '../../cli/output.ts';
import { renderTable } from '../../../shared/domain/text-table.ts';
import { fleetLines, resourcesOf } from './resources.ts';
import { terraformText } from './terraform.ts';
import { type SetupFlags, type SetupValues, setupValues } from './values.ts';

/** The configuration file need not exist yet: then everything comes from flags. */
export interface SetupOptions extends ConfigSource {
  /** A folder to write the file to; without it the text goes to stdout. */
  out?: string;
  flags: SetupFlags;
}

const FILE = 'crawlfleet.tf';
/** The mark in the first lines of every file we write; other files of the same name are not replaced. */
const OURS = 'What crawlfleet needs in an account. Written by: orchestrator setup';

export function setupCommand(options: SetupOptions, output: Output): ExitCode {
  const { environment } = options;
  const config = existsSync(resolve(options.configPath)) ? loadConfig({ ...options, flags: [] }).values : null;
  const values = setupValues(options.flags, config, environment);
  const text = terraformText(values);
  const resources = resourcesOf(values);
  const written = options.out === undefined ? null : writeText(options.out, text);
  if (written === null) {
    output.line(text);
  } else {
    output.line(
      renderTable(
        ['kind', 'name', 'why'],
        resources.map((r) => [r.kind, r.name, r.why]),
      ),
    );
    output.line(`\nWrote ${written}. Nothing is changed yet; to make it:`);
    output.line(`  ${terraformLine(dirname(written))}`);
    if (values.ec2MainServer !== null) output.line(beforeApply(values, dirname(written)));
    output.line(`\nFor fleet.yaml:\n\n${fleetLines(values)}`);
  }
  output.document({ values, resources, fleetYaml: fleetLines(values), written, text });
  return EXIT.complete;
}

/** What the machine of --main-server-on needs before it is made. */
function beforeApply({ ec2MainServer, region }: SetupValues, folder: string): string {
  const secret = ec2MainServer?.secret
    ? [
        `The database's URL goes into the secret once that is made: terraform${chdirTo(folder)} apply -target=aws_secretsmanager_secret.database`,
        `  aws secretsmanager put-secret-value --region ${region} --secret-id ${ec2MainServer.secret} --secret-string 'mysql://USER:PASSWORD@HOST/DATABASE'`,
      ]
    : [];
  return [
    `\nBefore that, put fleet.yaml, the files that it names, and the output of npm pack into ${shellWord(join(folder, 'main-server'))}.`,
    ...secret,
  ].join('\n');
}

function writeText(folder: string, text: string): string {
  const path = join(resolve(folder), FILE);
  if (isForeign(path)) {
    throw new AppError('usage', `${path} exists and was not written by setup; nothing was written`, {
      hint: 'Move it away, or name another folder with --out.',
    });
  }
  try {
    // Not recursive: a mistyped path is reported, not created.
    if (!existsSync(resolve(folder))) mkdirSync(resolve(folder));
    writeFileSync(path, text, { mode: 0o644 });
  } catch (error) {
    throw new AppError('usage', `${path} cannot be written`, {
      hint: 'Name a folder with --out, new or there, in one that exists.',
      cause: error,
    });
  }
  return path;
}

/** An unreadable file cannot be written either, and the write reports it. */
function isForeign(path: string): boolean {
  try {
    return existsSync(path) && !readFileSync(path, 'utf8').slice(0, 200).includes(OURS);
  } catch {
    return false;
  }
}

/** Terraform reads the current folder unless given another one. */
function terraformLine(folder: string): string {
  const chdir = chdirTo(folder);
  return `terraform${chdir} init && terraform${chdir} apply`;
}

function chdirTo(folder: string): string {
  const from = relative(process.cwd(), folder);
  return from === '' ? '' : ` -chdir=${shellWord(from.startsWith('..') ? folder : from)}`;
}
