/** Writes settings into a configuration file; comments and everything else stay as they are. */
import { readFileSync, writeFileSync } from 'node:fs';
import { isScalar, parseDocument } from 'yaml';
import { AppError } from '../../../shared/domain/errors.ts';

export interface Setting {
  path: readonly string[];
  value: string;
}

/** Throws `config-invalid`, and writes nothing, when the file cannot be edited in this way. */
export function writeSettings(file: string, settings: readonly Setting[]): void {
  try {
    writeFileSync(file, settings.reduce(editText, readFileSync(file, 'utf8')));
  } catch (cause) {
    const lines = settings.map(({ path, value }) => `${path.join('.')}: ${value}`);
    throw new AppError('config-invalid', `cannot write into ${file}`, {
      cause,
      hint: `Set it by hand: ${lines.join(', ')}`,
    });
  }
}

/**
 * The YAML text with this setting. A value that is there is replaced in place; only a new key lays the text out anew.
 */
export function editText(text: string, { path, value }: Setting): string {
  const document = parseDocument(text);
  const node = document.getIn(path, true);
  if (isScalar(node) && node.range) return text.slice(0, node.range[0]) + value + text.slice(node.range[1]);
  document.setIn(path, value);
  return document.toString({ lineWidth: 0 });
}
