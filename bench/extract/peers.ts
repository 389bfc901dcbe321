/**
 * The references for the extractor: the bare parser, handlers written by hand for this one page, and parsers that build
 * a tree.
 */
import { Parser, parseDocument } from 'htmlparser2';
import { parse } from 'parse5';

/** Parses the page and only counts events, so that all work is the parser's. */
export function countEvents(pieces: readonly string[]): number {
  let events = 0;
  const parser = new Parser({
    onopentag: () => void events++,
    onclosetag: () => void events++,
    ontext: () => void events++,
  });
  for (const piece of pieces) parser.write(piece);
  parser.end();
  return events;
}

/** The whole page as a tree of `domhandler`, of which nothing is taken. */
export const buildTree = (pieces: readonly string[]): object => parseDocument(pieces.join(''));

/** The same as a tree of `parse5`. */
export const buildParse5Tree = (pieces: readonly string[]): object => parse(pieces.join(''));

interface JsonLd {
  brand: { name: string };
  aggregateRating: { ratingValue: string };
}

/** The fastest practical reader written only for this page. */
export class HandwrittenReader {
  #title = '';
  #price: number | null = null;
  #stock = '';
  #json = '';
  readonly #crumbs: string[] = [];
  #open: 'title' | 'stock' | 'json' | 'crumb' | null = null;
  #inProduct = false;
  #inCrumbs = false;

  read(pieces: readonly string[]): object {
    const parser = new Parser({
      onopentag: (name, attributes) => this.#onOpen(name, attributes),
      ontext: (text) => this.#onText(text),
      onclosetag: (name) => this.#onClose(name),
    });
    for (const piece of pieces) parser.write(piece);
    parser.end();
    const { brand, aggregateRating } = JSON.parse(this.#json) as JsonLd;
    return {
      title: this.#title.trim(),
      price: this.#price,
      brand: brand.name,
      rating: Number(aggregateRating.ratingValue),
      crumbs: this.#crumbs.map((crumb) => crumb.trim()),
      stock: this.#stock.trim(),
    };
  }

  #onOpen(name: string, attributes: Record<string, string>): void {
    if (name === 'h1') this.#open = 'title';
    else if (name === 'article') this.#inProduct = true;
    else if (name === 'nav') this.#inCrumbs = true;
    else if (name === 'script' && attributes.type === 'application/ld+json') this.#open = 'json';
    else if (name === 'li' && this.#inCrumbs) {
      this.#open = 'crumb';
      this.#crumbs.push('');
    } else if (this.#inProduct && attributes.class === 'price') this.#price = Number(attributes['data-value']);
    else if (this.#inProduct && attributes.class === 'stock') this.#open = 'stock';
  }

  #onText(text: string): void {
    if (this.#open === null) return;
    if (this.#open === 'title') this.#title += text;
    else if (this.#open === 'json') this.#json += text;
    else if (this.#open === 'stock') this.#stock += text;
    else this.#crumbs[this.#crumbs.length - 1] += text;
  }

  #onClose(name: string): void {
    if (name === 'article') this.#inProduct = false;
    else if (name === 'nav') this.#inCrumbs = false;
    if (name === 'h1' || name === 'script' || name === 'li' || name === 'p') this.#open = null;
  }
}
