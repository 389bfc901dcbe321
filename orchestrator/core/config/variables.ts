/**
 * Variables in the values of fleet.yaml: `${NAME}` from the environment or a `.env` beside the file, `${file:PATH}`
 * from a file; `$${` stands for `${` itself. They are filled in after parsing, so no value can change the structure. A
 * mapping has none: there `${` belongs to patterns.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { MappingFault } from './faults.ts';
import { readTextFile, withoutMark } from './text-file.ts';

interface VariableSources {
  environment: Readonly<Record<string, string | undefined>>;
  /** Files are relative to it. */
  folder: string;
}

/** The variables of a `.env` in the folder; none without one. */
export function readDotEnv(folder: string): Record<string, string | undefined> {
  const file = join(folder, '.env');
  if (!existsSync(file)) return {};
  try {
    return parseEnv(readTextFile(file));
  } catch (error) {
    throw new AppError('config-invalid', `cannot read ${file}: ${describeError(error)}`);
  }
}

const VARIABLE = /\$\$\{|\$\{([^}]*)\}/g;

/** Fills the tree in place. `hide` puts the names back into a text that quotes their values. */
export function fillVariables(
  tree: Record<string, unknown>,
  place: VariableSources,
): { faults: MappingFault[]; hide: (text: string) => string } {
  const faults: MappingFault[] = [];
  const secrets = new Map<string, string>();
  const fill = (text: string, path: (string | number)[]): string =>
    text.replaceAll(VARIABLE, (whole, name: string | undefined) => {
      if (name === undefined) return '${';
      const value = valueOf(name, place);
      if (typeof value === 'string') {
        if (value !== '') secrets.set(value, whole);
        return value;
      }
      faults.push({ path, message: value.fault });
      return whole;
    });
  const walk = (node: object, path: (string | number)[]): void => {
    for (const [key, value] of Object.entries(node)) {
      const own = [...path, Array.isArray(node) ? Number(key) : key];
      if (own.join('.') === 'site.mapping') continue;
      if (typeof value === 'string') (node as Record<string, unknown>)[key] = fill(value, own);
      else if (typeof value === 'object' && value !== null) walk(value, own);
    }
  };
  walk(tree, []);
  // A longer value may contain a shorter one.
  const hidden = [...secrets].sort(([a], [b]) => b.length - a.length);
  return {
    faults,
    hide: (text) => hidden.reduce((shown, [value, name]) => shown.replaceAll(value, name), text),
  };
}

function valueOf(name: string, { environment, folder }: VariableSources): string | { fault: string } {
  const file = /^file:(.+)$/.exec(name)?.[1];
  if (file !== undefined) {
    try {
      // Editors end a file with a line break.
      return readTextFile(resolve(folder, file)).replace(/\r?\n$/, '');
    } catch (error) {
      return { fault: `\${file:${file}} cannot be read: ${describeError(error)}` };
    }
  }
  if (!/^[A-Za-z_]\w*$/.test(name))
    return { fault: `\${${name}} is no variable: write \${NAME} or \${file:PATH}, or $\${ for the text itself` };
  const value = environment[name];
  if (value !== undefined) return withoutMark(value);
  return { fault: `the variable ${name} is not set, neither in the environment nor in .env` };
}
