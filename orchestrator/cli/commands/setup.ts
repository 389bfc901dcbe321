/** `orchestrator setup`: prints what the account needs, as Terraform or aws-cli. Makes no call. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { AppError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { type ConfigPlace, loadConfig } from '../../app/config/load-config.ts';
import type { Output } from '../output.ts';
import { renderTable } from '../../app/text-table.ts';
import { awsCliText } from '../../app/setup/aws-cli.ts';
import { fleetLines, resourcesOf } from '../../app/setup/resources.ts';
import { terraformText } from '../../app/setup/terraform.ts';
import { type SetupFlags, setupValues } from '../../app/setup/values.ts';

/** The configuration file need not exist yet: then everything comes from flags. */
export interface SetupOptions extends ConfigPlace {
  format: 'terraform' | 'aws-cli';
  /** A folder to write the file to; without it the text goes to stdout. */
  out?: string;
  flags: SetupFlags;
}

const FILES = { terraform: 'crawlfleet.tf', 'aws-cli': 'crawlfleet-setup.sh' };
/** In the first lines of every file we write; other files of the same name are not replaced. */
const OURS = 'What crawlfleet needs in an account. Written by: orchestrator setup';

export function setupCommand(options: SetupOptions, output: Output): ExitCode {
  const { format, environment } = options;
  const config = existsSync(resolve(options.configPath)) ? loadConfig(options.configPath, environment).values : null;
  const values = setupValues(options.flags, config, environment);
  const text = format === 'terraform' ? terraformText(values) : awsCliText(values);
  const resources = resourcesOf(values);
  const written = options.out === undefined ? null : writeText(options.out, FILES[format], text);
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
    output.line(`  ${format === 'terraform' ? terraformLine(dirname(written)) : `bash ${quoted(written)}`}`);
    output.line(`\nFor fleet.yaml:\n\n${fleetLines(values)}`);
  }
  output.document({ format, values, resources, fleetYaml: fleetLines(values), written, text });
  return EXIT.complete;
}

function writeText(folder: string, name: string, text: string): string {
  const path = join(resolve(folder), name);
  if (isForeign(path)) {
    throw new AppError('usage', `${path} exists and was not written by setup; nothing was written`, {
      hint: 'Move it away, or name another folder with --out.',
    });
  }
  try {
    // Not recursive: a mistyped path is reported, not created.
    if (!existsSync(resolve(folder))) mkdirSync(resolve(folder));
    writeFileSync(path, text, { mode: name.endsWith('.sh') ? 0o755 : 0o644 });
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
  const from = relative(process.cwd(), folder);
  const chdir = from === '' ? '' : ` -chdir=${quoted(from.startsWith('..') ? folder : from)}`;
  return `terraform${chdir} init && terraform${chdir} apply`;
}

/** One word for a shell. */
const quoted = (path: string): string =>
  /^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
