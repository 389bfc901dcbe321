/**
 * A mapping with the position of each of its parts in the user's file: the result of reading either form, and the input
 * of the checks.
 */
import type { PageMapping, SelectStep } from '../../../shared/domain/mapping.ts';
import type { PlacedStep } from './chain.ts';
import type { FaultList, Path } from './faults.ts';

export interface PlacedField {
  name: string;
  path: Path;
  required: boolean;
  requiredPath: Path;
  steps: PlacedStep[];
}

export interface PlacedRows {
  path: Path;
  each: PlacedStep;
  key: string;
  empty: PlacedStep | null;
}

export interface PlacedPage {
  name: string;
  path: Path;
  urlPatterns: { pattern: string; path: Path }[];
  urlParsers: { description: string; path: Path; steps: PlacedStep[] }[];
  rows: PlacedRows | null;
  fields: PlacedField[];
}

/** Reads one mapping and reports its faults; null when its shape allows no further checks. */
export type PageReader = (
  value: Record<string, unknown>,
  path: Path,
  fallbackName: string,
  faults: FaultList,
) => PlacedPage | null;

/** The normalised mapping, without the positions. */
export function toPageMapping(page: PlacedPage): PageMapping {
  return {
    name: page.name,
    urlPatterns: page.urlPatterns.map(({ pattern }) => pattern),
    urlParsers: page.urlParsers.map(({ description, steps }) => ({
      description,
      steps: steps.map(({ step }) => step),
    })),
    rows: page.rows && {
      each: page.rows.each.step as SelectStep,
      key: page.rows.key,
      empty: page.rows.empty && (page.rows.empty.step as SelectStep),
    },
    fields: page.fields.map(({ name, steps, required }) => ({ name, steps: steps.map(({ step }) => step), required })),
  };
}
