/** Reads a mapping from its own file, YAML or JSON, with the faults as lines of text. */
import { readFileSync } from 'node:fs';
import { describeError } from '../../../shared/domain/errors.ts';
import type { Mapping } from '../../../shared/domain/mapping.ts';
import { readYaml } from './yaml-source.ts';
import { readMapping } from './read-mapping.ts';

export interface MappingFile {
  /** Usable only without faults. */
  mapping: Mapping;
  /** One line each: `mapping.yaml line 3: fields.price.integer: must be true or false`. */
  faults: string[];
}

/** Throws errors of the file system. `shownAs` names the file in the faults. */
export function readMappingFile(path: string, shownAs: string): MappingFile {
  // JSON is YAML, so one reader provides line numbers for both.
  const source = readYaml(readFileSync(path, 'utf8'));
  if (source.faults.length > 0) return { mapping: { pages: [] }, faults: source.faults.map((f) => `${shownAs} ${f}`) };
  const { mapping, faults } = readMapping(source.value);
  return {
    mapping,
    faults: faults.map((f) => `${shownAs} line ${source.lineOf(f.path)}: ${f.path.join('.') || 'file'}: ${f.message}`),
  };
}

/** Why the file cannot be read, on one line. */
export function describeUnreadable(shownAs: string, error: unknown): string {
  return `cannot read the mapping ${shownAs}: ${describeError(error)}`;
}
