/** The attributes of a start tag. Only their positions are recorded; names and values are read on demand. */
import { decodeHTMLAttribute } from 'entities/decode';
import {
  DOUBLE_QUOTE,
  EQUALS,
  GREATER_THAN,
  type Markup,
  SINGLE_QUOTE,
  SLASH,
  endsName,
  isNameAt,
  isSpace,
  toMarkup,
} from './characters.ts';
import type { Attributes } from './markup-events.ts';

const NOTHING = toMarkup('');

export class StartTag implements Attributes {
  #markup: Markup = NOTHING;
  readonly #places: number[] = [];
  #count = 0;
  /** The name requested last, and its value: several selectors read the class. */
  #askedName = '';
  #askedValue: string | undefined;
  #endsItself = false;

  /** True when the tag ends with `/>`. */
  get endsItself(): boolean {
    return this.#endsItself;
  }

  /** Scans the tag from after its name. Returns where the following text starts, -1 when the tag does not end. */
  scan(markup: Markup, from: number): number {
    this.clear();
    this.#markup = markup;
    const { codes } = markup;
    const { length } = codes;
    let at = from;
    while (at < length) {
      const code = codes[at]!;
      if (code === GREATER_THAN) return at + 1;
      if (isSpace(code)) at++;
      else if (code === SLASH) {
        at = skipSpace(codes, at + 1);
        if (at < length && codes[at] === GREATER_THAN) {
          this.#endsItself = true;
          return at + 1;
        }
      } else {
        at = this.#scanAttribute(markup, at);
        if (at === -1) return -1;
      }
    }
    return -1;
  }

  clear(): void {
    this.#count = 0;
    this.#askedName = '';
    this.#askedValue = undefined;
    this.#endsItself = false;
  }

  get(name: string): string | undefined {
    if (this.#count === 0) return undefined;
    if (name !== this.#askedName) {
      this.#askedName = name;
      this.#askedValue = this.#find(name);
    }
    return this.#askedValue;
  }

  toRecord(): Record<string, string> {
    const record: Record<string, string> = {};
    for (let i = 0; i < this.#count; i++) {
      const name = this.#name(i);
      if (!Object.hasOwn(record, name)) record[name] = this.#value(i);
    }
    return record;
  }

  /** Returns where the next attribute may start, -1 when the text ends before this one does. */
  #scanAttribute({ text, codes }: Markup, start: number): number {
    const { length } = codes;
    let at = start + 1;
    while (at < length && !endsAttributeName(codes[at]!)) at++;
    const nameEnd = at;
    at = skipSpace(codes, at);
    if (at >= length) return -1;
    if (codes[at] !== EQUALS) {
      this.#add(start, nameEnd, at, at);
      return at;
    }
    at = skipSpace(codes, at + 1);
    if (at >= length) return -1;
    const quote = codes[at];
    if (quote === DOUBLE_QUOTE || quote === SINGLE_QUOTE) {
      const valueEnd = text.indexOf(quote === DOUBLE_QUOTE ? '"' : "'", at + 1);
      if (valueEnd === -1) return -1;
      this.#add(start, nameEnd, at + 1, valueEnd);
      return valueEnd + 1;
    }
    const valueStart = at;
    while (at < length && !endsBareValue(codes[at]!)) at++;
    if (at >= length) return -1;
    this.#add(start, nameEnd, valueStart, at);
    return at;
  }

  #add(nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): void {
    const places = this.#places;
    const at = this.#count++ * 4;
    places[at] = nameStart;
    places[at + 1] = nameEnd;
    places[at + 2] = valueStart;
    places[at + 3] = valueEnd;
  }

  #find(name: string): string | undefined {
    const places = this.#places;
    for (let i = 0; i < this.#count; i++) {
      if (isNameAt(this.#markup, places[i * 4]!, places[i * 4 + 1]!, name)) return this.#value(i);
    }
    return undefined;
  }

  #name(i: number): string {
    return this.#markup.text.slice(this.#places[i * 4], this.#places[i * 4 + 1]).toLowerCase();
  }

  #value(i: number): string {
    const value = this.#markup.text.slice(this.#places[i * 4 + 2], this.#places[i * 4 + 3]);
    return value.includes('&') ? decodeHTMLAttribute(value) : value;
  }
}

function skipSpace(codes: Uint16Array, from: number): number {
  let at = from;
  while (at < codes.length && isSpace(codes[at]!)) at++;
  return at;
}

function endsAttributeName(code: number): boolean {
  return code === EQUALS || endsName(code);
}

function endsBareValue(code: number): boolean {
  return code === GREATER_THAN || isSpace(code);
}
