/** What the names say that shops give to their elements: ids, classes and the like are English nearly everywhere. */
import type { Element } from '../extract/dom/queries.ts';

export const TITLE_NAMES = /title|name|heading|headline/i;
export const PRICE_NAMES = /pri[cs]e|preis|prix|preci|prezz|prijs|cena|cijena|hinta|fiyat|harga/i;

export const ASIDE_TAGS: ReadonlySet<string> = new Set(
  'header footer nav aside dialog del s strike select template noscript head script style'.split(' '),
);

export const namesOf = ({ attribs: { id = '', class: classes = '', itemprop = '' } }: Element): string =>
  `${id} ${classes} ${itemprop}`;
