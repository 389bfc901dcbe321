/**
 * Breaks in the text of an element, for fields that read a number or a date from it: where a browser without the page's
 * CSS starts a new line or cell, and where an element begins or ends between two digits. They are control characters,
 * which `numbers/plain-text.ts` interprets and which no value keeps after it is read.
 */
import { type Display, tagNamed } from './markup/tags.ts';

/** A new line or cell. */
export const BREAK = '\u001d';
/** The border of an element between two digits. */
export const BORDER = '\u001e';
/** A border behind which the digits are raised or small: possibly cents. */
export const RAISED = '\u001f';

const ANY = new RegExp(`[${BREAK}${BORDER}${RAISED}]`);
const EVERY = new RegExp(ANY, 'g');
const BETWEEN_DIGITS = new RegExp(`(?<=\\p{Nd})${ANY.source}+(?=\\p{Nd})`, 'gu');
const DIGIT = /\p{Nd}/u;

/** Follows the elements and texts of a page and knows the break between two texts. */
export class TextBreaks {
  readonly #open: Display[] = [];
  #mark = '';
  /** The last character of the text before. */
  #last = '';
  /** A small or raised element has ended: what follows is not smaller than the text before. */
  #wasSmall = false;

  open(name: string): void {
    const { display } = tagNamed(name);
    this.#open.push(display);
    this.#cross(display, true);
  }

  close(): void {
    this.#cross(this.#open.pop() ?? 'none', false);
  }

  /** The break before this text, which has at least one character; '' for none. */
  text(text: string): string {
    const mark = this.#mark;
    const last = this.#last;
    this.#mark = '';
    this.#last = text.charAt(text.length - 1);
    this.#wasSmall = false;
    return mark === '' || mark === BREAK || (DIGIT.test(last) && DIGIT.test(text.charAt(0))) ? mark : '';
  }

  #cross(display: Display, opens: boolean): void {
    if (display === 'none' || this.#mark === BREAK) return;
    if (display === 'block') this.#mark = BREAK;
    else if (display === 'inline') this.#mark ||= BORDER;
    else {
      this.#mark = opens && !this.#wasSmall ? RAISED : BORDER;
      this.#wasSmall ||= !opens;
    }
  }
}

export function hasBreaks(text: string): boolean {
  return ANY.test(text);
}

/** The text with its breaks replaced. */
export function replaceBreaks(text: string, by: string): string {
  return hasBreaks(text) ? text.replaceAll(EVERY, by) : text;
}

/** A text of the page, before breaks are added: its own control characters are no breaks. As long as the text. */
export function withoutOwnBreaks(text: string): string {
  return replaceBreaks(text, ' ');
}

/** The text without its breaks; two digits that one separates remain apart, by a space. */
export function joinPieces(text: string): string {
  return replaceBreaks(text.replace(BETWEEN_DIGITS, ' '), '');
}

/**
 * A text that steps search without its breaks: `a<br>b` contains `ab`. A slice, by positions in `plain`, keeps the
 * breaks inside it.
 */
export class BrokenText {
  readonly plain: string;
  readonly #text: string;
  /** The position in `plain` of each break. */
  readonly #breaks: number[] = [];

  constructor(text: string) {
    this.#text = text;
    this.plain = replaceBreaks(text, '');
    if (this.plain.length === text.length) return;
    for (const { index } of text.matchAll(EVERY)) this.#breaks.push(index - this.#breaks.length);
  }

  slice(start: number, end = this.plain.length): string {
    const before = this.#countBefore(start + 1);
    return this.#text.slice(start + before, end + Math.max(before, this.#countBefore(end)));
  }

  /** How many breaks are before this position: a binary search, as a long text is sliced thousands of times. */
  #countBefore(position: number): number {
    let low = 0;
    let high = this.#breaks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#breaks[middle]! < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
