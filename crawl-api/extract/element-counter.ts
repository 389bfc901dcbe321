/** Follows elements as they open and close, and provides the properties that a selector may test of the opening one. */
import type { ElementView } from './element-test.ts';
import type { Attributes } from './markup/markup-events.ts';
import { RecordAttributes } from './markup/record-attributes.ts';
import { MAX_DEPTH, PageLimitError } from './page-limits.ts';

interface Level {
  childCount: number;
  types: Map<string, number> | null;
}

export class ElementCounter {
  readonly #countsTypes: boolean;
  readonly #levels: Level[] = [{ childCount: 0, types: null }];
  /** One object for all elements: a page has thousands. */
  readonly #view: ElementView = {
    name: '',
    attributes: new RecordAttributes(),
    position: 0,
    positionOfType: 0,
    isRoot: false,
    isScope: false,
  };
  #depth = 0;

  /** `countsTypes`: whether to count positions among elements of the same name. */
  constructor(countsTypes: boolean) {
    this.#countsTypes = countsTypes;
  }

  /** Number of open elements. */
  get depth(): number {
    return this.#depth;
  }

  /** Enters the element; the view is valid until the next call. Throws PageLimitError when the page nests too deep. */
  open(name: string, attributes: Attributes): ElementView {
    if (this.#depth >= MAX_DEPTH) throw new PageLimitError(`the page nests deeper than ${MAX_DEPTH} elements`);
    const parent = this.#levels[this.#depth]!;
    const level = (this.#levels[++this.#depth] ??= { childCount: 0, types: null });
    level.childCount = 0;
    level.types?.clear();
    const view = this.#view;
    view.name = name;
    view.attributes = attributes;
    view.position = ++parent.childCount;
    view.isRoot = this.#depth === 1;
    if (this.#countsTypes) {
      parent.types ??= new Map();
      view.positionOfType = (parent.types.get(name) ?? 0) + 1;
      parent.types.set(name, view.positionOfType);
    }
    return view;
  }

  close(): void {
    if (this.#depth > 0) this.#depth--;
  }
}
