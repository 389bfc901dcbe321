/** CSS selectors that a person would write for an element: short, of names that look chosen, right on its page. */
import { Element } from '../extract/dom/queries.ts';
import { isWithin, type TreeNode } from '../extract/dom/tree.ts';

/** Attributes that shops give to elements for their own tests and scripts. */
const MARKS = ['itemprop', 'data-testid', 'data-test', 'data-qa', 'data-hook', 'data-role'];
/** How far up an element is looked for that narrows the search. */
const MAX_LEVELS = 8;
const MAX_SELECTORS = 12;

export class SelectorIndex {
  readonly #root: TreeNode;
  /** The elements by simple selector, in document order. */
  readonly #elements = new Map<string, Element[]>();

  constructor(root: TreeNode, all: readonly Element[]) {
    this.#root = root;
    for (const element of all) {
      for (const selector of [element.name, ...selectorsOf(element)]) {
        const known = this.#elements.get(selector);
        if (known) known.push(element);
        else this.#elements.set(selector, [element]);
      }
    }
  }

  /** Those whose first match is this element; the ones with such names first. */
  selectorsFor(element: Element, names: RegExp): string[] {
    const own = [...(element.name === 'h1' ? ['h1'] : []), ...selectorsOf(element)];
    const found = own.filter((selector) => this.#elements.get(selector)?.[0] === element);
    const classes = own.filter((selector) => selector.startsWith('.'));
    for (const [i, one] of classes.entries())
      for (const other of classes.slice(i + 1)) if (this.#firstOfBoth(one, other) === element) found.push(one + other);
    const inside = own.length > 0 ? own : [element.name];
    let up = element.parent;
    for (let level = 0; level < MAX_LEVELS && up instanceof Element && up.parent !== this.#root; level++) {
      for (const around of [...(up.name === 'main' ? ['main'] : []), ...selectorsOf(up)])
        found.push(
          ...inside.filter((one) => this.#firstInside(around, one) === element).map((one) => `${around} ${one}`),
        );
      up = up.parent;
    }
    const rank = (selector: string): number =>
      selector === 'h1' ? 0 : names.test(selector.slice(selector.lastIndexOf(' ') + 1)) ? 1 : 2;
    return [...new Set(found)].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_SELECTORS);
  }

  #firstOfBoth(one: string, other: string): Element | undefined {
    const others = new Set(this.#elements.get(other));
    return this.#elements.get(one)?.find((element) => others.has(element));
  }

  #firstInside(around: string, selector: string): Element | undefined {
    const outer = this.#elements.get(around) ?? [];
    return this.#elements.get(selector)?.find((one) => outer.some((part) => isWithin(one, part)));
  }
}

/** The simple selectors that an element matches: by id, by the attributes above, by each class. */
function selectorsOf({ attribs }: Element): string[] {
  const { id = '', class: classes = '' } = attribs;
  return [
    ...(isChosen(id) ? [`#${id}`] : []),
    ...MARKS.filter((name) => isChosen(attribs[name] ?? '')).map((name) => `[${name}="${attribs[name]}"]`),
    ...classes
      .split(/\s+/)
      .filter(isChosen)
      .map((name) => `.${name}`),
  ];
}

/** Names that a program has made (`css-1x2y3z`, `price___3hsaL`, `item-48213`) change with the page or the release. */
const isChosen = (name: string): boolean =>
  name.length <= 40 && /^[A-Za-z][A-Za-z_-]*\d{0,2}$/.test(name) && !/[a-z][A-Z][a-z]?[A-Z]|__[A-Za-z]{5}$/.test(name);
