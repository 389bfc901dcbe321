/** A mapping with the position of each part in the user's file: read from either form, then checked. */
import { z } from 'zod';
import type { Assertion, PageMapping, SelectStep, Step } from '../../../shared/domain/mapping.ts';
import type { PlacedStep } from './chain.ts';
import type { FaultList, Path } from './faults.ts';
import { text } from './processors.ts';
import { requestOf, requestSection } from './request-section.ts';
import type { RequestTemplate } from '../../../shared/domain/request-template.ts';

export interface PlacedField {
  name: string;
  path: Path;
  required: boolean;
  requiredPath: Path;
  /** The chain of each source; empty after a fault. */
  chains: PlacedStep[][];
  sourceOf?: string;
  assert?: { value: Assertion; path: Path };
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
  request: RequestTemplate | null;
  urlParsers: { description: string; path: Path; steps: PlacedStep[] }[];
  rows: PlacedRows | null;
  fields: PlacedField[];
}

/** What the two forms of a mapping write differently. Each reads one part, and reports its faults. */
export interface PageForm {
  urlPatterns: z.ZodType<unknown[]>;
  readPattern(value: unknown, path: Path, faults: FaultList): PlacedPage['urlPatterns'];
  readParser(value: unknown, path: Path, faults: FaultList): PlacedPage['urlParsers'];
  readFields(value: unknown, path: Path, faults: FaultList): PlacedField[];
  readSelector(value: unknown, path: Path, faults: FaultList): PlacedStep | null;
}

/** The parts of a mapping besides its fields; each is read on its own, so that all its faults are reported. */
const pageShape = (urlPatterns: PageForm['urlPatterns']) =>
  z.strictObject({
    name: text().exactOptional(),
    url_patterns: urlPatterns.exactOptional(),
    request: z.unknown().exactOptional(),
    url_parsers: z.array(z.unknown(), { error: 'must be a list' }).exactOptional(),
    rows: z.unknown().exactOptional(),
    fields: z.unknown().exactOptional(),
  });
const rowsShape = z.strictObject({
  each: z.unknown().refine((value) => value !== undefined, 'missing'),
  key: text(),
  empty: z.unknown().exactOptional(),
});

/** Reads one mapping and reports its faults; null when its shape allows no further checks. */
export function readPage(
  form: PageForm,
  { value, path, fallbackName }: { value: Record<string, unknown>; path: Path; fallbackName: string },
  faults: FaultList,
): PlacedPage | null {
  const page = faults.read(pageShape(form.urlPatterns), value, path);
  // Fields are read in any case: their faults are listed together with these.
  const fields = form.readFields(value.fields, [...path, 'fields'], faults);
  if (!page) return null;
  const { name = fallbackName, url_patterns: patterns = [], url_parsers: parsers = [], rows, request } = page;
  const asked = request === undefined ? null : faults.read(requestSection(), request, [...path, 'request']);
  if (value.fields === undefined && patterns.length === 0)
    faults.report(
      [...path, 'fields'],
      'must have at least one field: `title: "h1"`; only pages of links, with url_patterns, need none',
    );
  return {
    name,
    path,
    urlPatterns: patterns.flatMap((one, i) => form.readPattern(one, [...path, 'url_patterns', i], faults)),
    request: asked && requestOf(asked),
    urlParsers: parsers.flatMap((one, i) => form.readParser(one, [...path, 'url_parsers', i], faults)),
    rows: rows === undefined ? null : readRows(form, rows, [...path, 'rows'], faults),
    fields,
  };
}

function readRows(form: PageForm, value: unknown, path: Path, faults: FaultList): PlacedRows | null {
  const rows = faults.read(rowsShape, value, path);
  if (!rows) return null;
  const each = form.readSelector(rows.each, [...path, 'each'], faults);
  const empty = rows.empty === undefined ? null : form.readSelector(rows.empty, [...path, 'empty'], faults);
  return each && { path, each, key: rows.key, empty };
}

/** The normalised mapping, without the positions. */
export function toPageMapping(page: PlacedPage): PageMapping {
  return {
    name: page.name,
    urlPatterns: page.urlPatterns.map(({ pattern }) => pattern),
    ...(page.request === null ? {} : { request: page.request }),
    urlParsers: page.urlParsers.map(({ description, steps }) => ({ description, steps: stepsOf(steps) })),
    rows: page.rows && {
      each: page.rows.each.step as SelectStep,
      key: page.rows.key,
      empty: page.rows.empty && (page.rows.empty.step as SelectStep),
    },
    fields: page.fields.map(({ name, required, chains: [first = [], ...others], sourceOf, assert }) => ({
      name,
      steps: stepsOf(first),
      ...(others.length === 0 ? {} : { fallbacks: others.map(stepsOf) }),
      ...(sourceOf === undefined ? {} : { sourceOf }),
      required,
      ...(assert === undefined ? {} : { assert: assert.value }),
    })),
  };
}

export const stepsOf = (chain: readonly PlacedStep[]): Step[] => chain.map(({ step }) => step);
