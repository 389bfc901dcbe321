/** Which language `init --url` asks for beside that of the page, and what it says of the answer. */
import { describe, expect, it } from 'vitest';
import type { ProposedField } from '../../../../orchestrator/features/init/propose-fields.ts';
import {
  comparedPlaces,
  languageNotes,
  otherLanguage,
} from '../../../../orchestrator/features/init/propose-language.ts';

describe('otherLanguage', () => {
  it.each([
    ['<html lang="ja">', 'en'],
    ['<html class=x lang=en-GB>', 'de'],
    ['<html>', 'en'],
    [
      '<html lang="de-CH"><link rel=alternate hreflang="x-default"><link hreflang="de-AT"><link hreflang="fr-CH">',
      'fr',
    ],
  ])('of %s is %s', (html, language) => {
    expect(otherLanguage(html)).toBe(language);
  });
});

describe('languageNotes', () => {
  const field = (name: string, value: string | number, more: Partial<ProposedField> = {}): ProposedField => ({
    name,
    sources: [{ json_ld: 'name' }, { css: 'h1' }],
    options: {},
    values: [value, 'of the second page'],
    required: false,
    doubt: null,
    ...more,
  });
  const fields = [
    field('title', 'Teapot'),
    field('price', 12, { sources: [{ css: '.p' }], currencies: ['JPY'] }),
    field('sku', 'S'),
  ];

  it('asks for title and price alone', () => {
    expect(comparedPlaces(fields).map(({ field: name }) => name)).toEqual(['title', 'title', 'price']);
  });

  it.each<[string, Record<string, string | number | null>, string[]]>([
    ['the same', { place_0: null, place_1: 'Teapot', place_2: 12, place_2_currency: 'JPY' }, []],
    ['no page of this kind', {}, []],
    [
      'another title',
      { place_0: 'Teekanne', place_1: 'x', place_2: 12, place_2_currency: 'JPY' },
      ['the title is Teekanne, without Teapot'],
    ],
    [
      'another currency',
      { place_1: 'Teapot', place_2: 12, place_2_currency: 'EUR' },
      ['the price is 12 EUR, without 12 JPY'],
    ],
  ])('says of %s', (_what, row, said) => {
    const notes = languageNotes(fields, 'de', row);
    expect(notes).toHaveLength(said.length);
    for (const [i, text] of said.entries()) expect(notes[i]).toContain(`with site.language: de ${text}`);
  });
});
