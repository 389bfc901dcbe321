/**
 * Loads only the libraries that the steps of a mapping need: an instance has little memory, and most mappings use only
 * CSS and JSON-LD.
 */
import { chainsOf, type Mapping, type Step } from '../../shared/domain/mapping.ts';
import { needsDom } from '../../shared/adapters/step-faults.ts';
import type * as DateFormat from '../../shared/adapters/steps/date-format.ts';
import type * as JsonPath from '../../shared/adapters/steps/json-path.ts';
import type * as Regex from '../../shared/adapters/steps/regex.ts';
import type * as Dom from './dom/queries.ts';

export interface Libraries {
  regex: typeof Regex | null;
  jsonPath: typeof JsonPath | null;
  date: typeof DateFormat | null;
  dom: typeof Dom | null;
}

export async function loadLibraries(mapping: Mapping, allByTree: boolean): Promise<Libraries> {
  const steps = mapping.pages.flatMap(stepsOf);
  const has = (type: Step['type']): boolean => steps.some((step) => step.type === type);
  const hasPatterns = mapping.pages.some(({ urlPatterns }) => urlPatterns.length > 0);
  return {
    regex: has('regex') || hasPatterns ? await import('../../shared/adapters/steps/regex.ts') : null,
    jsonPath: has('jsonpath') ? await import('../../shared/adapters/steps/json-path.ts') : null,
    date: has('date') ? await import('../../shared/adapters/steps/date-format.ts') : null,
    dom: allByTree || steps.some((step) => needsDom(step) !== null) ? await import('./dom/queries.ts') : null,
  };
}

function stepsOf({ fields, urlParsers, rows }: Mapping['pages'][number]): Step[] {
  const chains = [...fields.flatMap(chainsOf), ...urlParsers.map(({ steps }) => steps)].flat();
  return rows ? [...chains, rows.each, ...(rows.empty ? [rows.empty] : [])] : chains;
}

/** The library of a compiled step: loadLibraries has loaded it for the same steps. */
export function loaded<T>(library: T | null): T {
  if (library === null) throw new Error('a step was compiled without its library');
  return library;
}
