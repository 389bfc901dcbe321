/** `init --url`: whether a shop answers differently to another language. */
import { isDeepStrictEqual } from 'node:util';
import type { FieldValue, Row } from '../../../shared/domain/mapping.ts';
import { oneLine } from '../../../shared/domain/terminal-text.ts';
import { type Place, probedPage, type ProposedField } from './propose-fields.ts';

/** Languages that many shops have: the second one for pages in the first one. */
const USUAL = ['en', 'de'] as const;

/** A language other than that of the page: one that the page names as its translation, else a usual one. */
export function otherLanguage(html: string): string {
  const own = languageOf(/<html\b[^>]*\blang=["']?([\w-]+)/i.exec(html)?.[1]);
  const named = [...html.matchAll(/\bhreflang=["']?([\w-]+)/gi)].map(([, tag]) => languageOf(tag));
  return [...named, ...USUAL].find((language) => language !== null && language !== own)!;
}

/** `de` of `de-CH`; null for no language, such as x-default. */
const languageOf = (tag: string | undefined): string | null =>
  /^[a-z]{2,3}(?![a-z])/i.exec(tag ?? '')?.[0].toLowerCase() ?? null;

/** What a visitor notices first. */
const COMPARED = ['title', 'price'];

/** Where the compared fields are, each in the order in which its places are tried. */
export const comparedPlaces = (fields: readonly ProposedField[]): Place[] =>
  fields
    .filter(({ name }) => COMPARED.includes(name))
    .flatMap(({ name, sources }) => sources.map((source) => ({ field: name as Place['field'], source })));

/**
 * A line for the user if the page has other values in the other language; none otherwise.
 * @param row what `comparedPlaces` give on the first page, asked for in this language
 */
export function languageNotes(fields: readonly ProposedField[], language: string, row: Row): string[] {
  const places = comparedPlaces(fields);
  const { values } = probedPage(places, row);
  return fields.flatMap(({ name, values: [usual], currencies }) => {
    const own = values.filter(({ value }, i) => places[i]!.field === name && value !== null)[0];
    if (own === undefined || usual === null || usual === undefined) return [];
    const before = [usual, currencies?.[0] ?? null];
    const after = [own.value, own.currency];
    if (isDeepStrictEqual(before, after)) return [];
    return [
      `the shop answers differently by language: with site.language: ${language} the ${name} is ${shown(after)}, without ${shown(before)}; docs/headers.md`,
    ];
  });
}

const MAX_CHARS = 60;

const shown = (values: readonly FieldValue[]): string =>
  oneLine(
    values
      .filter((value) => value !== null)
      .map((value) => (typeof value === 'object' ? JSON.stringify(value) : String(value)))
      .join(' '),
  ).slice(0, MAX_CHARS);
