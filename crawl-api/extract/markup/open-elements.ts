/**
 * The elements that are open, and what follows from HTML's rules when one starts or ends. Says every start and end to
 * `opened` and `closed`, also those the page leaves out.
 */
import { isAt } from './names.ts';
import type { Tag } from './tags.ts';
import { KNOWN_TAGS, svgSpelling, tagAt, tagNamed } from './tags.ts';

const IMAGE_ALIAS = tagNamed('img');
const FORM = tagNamed('form');

export class OpenElements {
  readonly #stack: Tag[] = [];
  readonly #onClose: () => void;
  /** Whose rules hold, for each element that changes them. */
  readonly #rules: NonNullable<Tag['rules']>[] = ['html'];
  /** How many of each name are open, so that a stray end tag need not be searched for. */
  readonly #known = new Uint16Array(KNOWN_TAGS);
  readonly #others = new Map<string, number>();

  constructor(onClose: () => void) {
    this.#onClose = onClose;
  }

  /** True inside svg and math, where HTML's own rules for elements do not hold. */
  get isForeign(): boolean {
    return this.#rules[this.#rules.length - 1] !== 'html';
  }

  get depth(): number {
    return this.#stack.length;
  }

  /** The tag whose name stands there. */
  read(text: string, start: number, end: number): Tag {
    const tag = tagAt(text, start, end);
    if (this.#rules.length === 1) return tag.name === 'image' ? IMAGE_ALIAS : tag;
    const spelling = svgSpelling(tag.name);
    if (spelling !== undefined && (this.#rules.at(-1) === 'svg' || this.#count(tagNamed(spelling)) > 0))
      return tagNamed(spelling);
    return tag.name === 'image' && !this.isForeign ? IMAGE_ALIAS : tag;
  }

  /** Whether the start tag makes no element: a form inside a form. */
  isIgnored(tag: Tag): boolean {
    return tag === FORM && this.#count(tag) > 0;
  }

  /** Ends the elements that cannot hold this one. */
  makeRoom(tag: Tag): void {
    if (tag.ends === null) return;
    while (this.#stack.length > 0 && tag.ends.has(this.#stack[this.#stack.length - 1]!.name)) this.pop();
  }

  push(tag: Tag): void {
    this.#stack.push(tag);
    if (tag.rules !== null) this.#rules.push(tag.rules);
    if (tag.id >= 0) this.#known[tag.id]!++;
    else this.#others.set(tag.name, this.#count(tag) + 1);
  }

  /** Ends the innermost element. */
  pop(): void {
    const tag = this.#stack.pop()!;
    if (tag.rules !== null) this.#rules.pop();
    if (tag.id >= 0) this.#known[tag.id]!--;
    else this.#others.set(tag.name, this.#count(tag) - 1);
    this.#onClose();
  }

  /** Ends the innermost element if its name stands there, which is so of nearly every end tag. */
  popIfNamed(text: string, start: number, end: number): boolean {
    // Inside svg and math a name may be another in a different case.
    if (this.#stack.length === 0 || this.#rules.length > 1) return false;
    if (!isAt(text, start, end, this.#stack[this.#stack.length - 1]!.name)) return false;
    this.pop();
    return true;
  }

  /** Ends the innermost element of this name and all inside it; false when none is open. */
  popTo(tag: Tag): boolean {
    if (this.#count(tag) === 0) return false;
    while (this.#stack[this.#stack.length - 1]!.name !== tag.name) this.pop();
    this.pop();
    return true;
  }

  #count(tag: Tag): number {
    return tag.id >= 0 ? this.#known[tag.id]! : (this.#others.get(tag.name) ?? 0);
  }
}
