/**
 * Variables in the values of fleet.yaml: `${NAME}` from the environment or a `.env` beside the file, `${file:PATH}`
 * from a file; `$${` stands for `${` itself. They are filled in after parsing, so no value can change the structure. A
 * mapping has none: there `${` belongs to patterns. Headers and cookies of the user stay as they are written: a secret
 * among them must reach nothing that is stored.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { AppError, describeError } from '../../../shared/domain/errors.ts';
import type { Secrets } from '../../../shared/wire/secrets.ts';
import type { MappingFault } from './faults.ts';
import { readTextFile, withoutMark } from './text-file.ts';

export interface VariableSources {
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

/** A value that headers or cookies of the user send. */
const isSent = (path: readonly (string | number)[]): boolean =>
  /^site\.(product_url\.\d+\.)?(headers|cookies)\./.test(path.join('.'));

/** True for a text that has a variable. */
export const hasVariable = (text: string): boolean => variablesIn([text]).length > 0;

/** A text without variables, as it is meant. */
export const unescaped = (text: string): string => text.replaceAll('$${', () => '${');

/** The text with its variables filled in. @param onValue called with each value and the variable as it is written */
function fillText(
  text: string,
  place: VariableSources,
  { onValue, onFault }: { onValue: (value: string, whole: string) => void; onFault: (fault: string) => void },
): string {
  return text.replaceAll(VARIABLE, (whole, name: string | undefined) => {
    if (name === undefined) return '${';
    const value = valueOf(name, place);
    if (typeof value === 'string') {
      onValue(value, whole);
      return value;
    }
    onFault(value.fault);
    return whole;
  });
}

/**
 * Fills the tree in place, but for what the user has sent to the site: `sent` has those values by their texts. `hide`
 * puts the names back into a text that quotes their values.
 */
export function fillVariables(
  tree: Record<string, unknown>,
  place: VariableSources,
): { faults: MappingFault[]; sent: ReadonlyMap<string, string>; hide: (text: string) => string } {
  const faults: MappingFault[] = [];
  const sent = new Map<string, string>();
  const secrets = new Map<string, string>();
  const fill = (text: string, path: (string | number)[]): string =>
    fillText(text, place, {
      onValue: (value, whole) => void (value !== '' && secrets.set(value, whole)),
      onFault: (message) => void faults.push({ path, message }),
    });
  const walk = (node: object, path: (string | number)[]): void => {
    for (const [key, value] of Object.entries(node)) {
      const own = [...path, Array.isArray(node) ? Number(key) : key];
      if (own.join('.') === 'site.mapping') continue;
      if (typeof value === 'string' && isSent(own)) sent.set(value, fill(value, own));
      else if (typeof value === 'string') (node as Record<string, unknown>)[key] = fill(value, own);
      else if (typeof value === 'object' && value !== null) walk(value, own);
    }
  };
  walk(tree, []);
  // A longer value may contain a shorter one.
  const hidden = [...secrets].sort(([a], [b]) => b.length - a.length);
  return {
    faults,
    sent,
    hide: (text) => hidden.reduce((shown, [value, name]) => shown.replaceAll(value, name), text),
  };
}

/**
 * The secrets of a run that these texts stand for, as they are now: a file or a `.env` may have another value than at
 * its start. Throws `config-invalid` when one has none. @param place its environment wins over `.env`
 */
export function readSecrets(texts: readonly string[], { environment, folder }: VariableSources): Secrets {
  const place = { environment: { ...readDotEnv(folder), ...environment }, folder };
  const masked = new Set<string>();
  const values = texts.map((text): [string, string] => {
    const onFault = (fault: string): void => {
      throw new AppError('config-invalid', fault);
    };
    return [text, fillText(text, place, { onValue: (value) => void masked.add(value), onFault })];
  });
  return { values: Object.fromEntries(values), masked: [...masked] };
}

/** What stands between the braces of the variables in these texts. */
export const variablesIn = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => [...text.matchAll(VARIABLE)].flatMap(([, name]) => name ?? []));

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
