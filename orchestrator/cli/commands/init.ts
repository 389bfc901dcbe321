/** `orchestrator init`: writes a commented fleet.yaml and mapping.yaml to start from; never over an existing file. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import { EXIT, type ExitCode } from '../../../shared/domain/exit-codes.ts';
import { FLEET_TEMPLATE, MAPPING_TEMPLATE } from '../../app/templates.ts';
import type { Output } from '../output.ts';

export function initCommand(folder: string, output: Output): ExitCode {
  const target = resolve(folder);
  const files = [
    { path: join(target, 'fleet.yaml'), text: FLEET_TEMPLATE },
    { path: join(target, 'mapping.yaml'), text: MAPPING_TEMPLATE },
  ];
  const existing = files.filter((f) => existsSync(f.path)).map((f) => f.path);
  if (existing.length > 0) {
    const exist = existing.length === 1 ? 'exists' : 'exist';
    throw new AppError('usage', `${existing.join(' and ')} ${exist} already; nothing was written`, {
      hint: 'Move it away, or name another folder: orchestrator init FOLDER',
    });
  }
  try {
    makeFolder(target);
    for (const { path, text } of files) writeFileSync(path, text);
  } catch (error) {
    throw new AppError('folder-unwritable', `cannot write into ${target}: ${describeError(error)}`, {
      hint: 'Name a folder that you may write to: orchestrator init FOLDER',
    });
  }
  output.line(`Wrote ${files.map((f) => f.path).join(' and ')}.`);
  output.line('Next: edit them, see what a product page gives with');
  output.line(`  orchestrator extract --config ${files[0]!.path} --url URL`);
  output.line('and look at the plan with');
  output.line(`  orchestrator plan --config ${files[0]!.path} --deadline 4h --dry-run`);
  output.document({ written: files.map((f) => f.path) });
  return EXIT.complete;
}

/** Folder by folder: on a file system that allows none, such as /proc, Node's own recursion never ends. */
function makeFolder(path: string): void {
  if (existsSync(path)) return void readdirSync(path);
  makeFolder(dirname(path));
  mkdirSync(path);
}
