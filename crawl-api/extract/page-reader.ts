/**
 * Extracts the targets of a plan from a page as it streams by. The text of an element is all text inside it, with
 * entities decoded, without the content of script and style; a matched script or style itself yields its source.
 */
import type { Element } from 'domhandler';
import { parseJsonBlock } from './linked-data/json-text.ts';
import { LinkedData } from './linked-data/linked-data.ts';
import { MicrodataReader } from './linked-data/microdata.ts';
import type { Attributes, MarkupHandler } from './markup/markup-events.ts';
import {
  MAX_DEPTH,
  MAX_NESTED_RECORDS,
  MAX_ROWS,
  type PageBudget,
  PageLimitError,
  TOO_MANY_ROWS,
} from './page-limits.ts';
import type { Contents, PageContents, PagePlan, Target } from './page-plan.ts';
import { toUrl } from './processors.ts';
import { type ElementView, SelectorMatcher } from './selector-matcher.ts';
import { TextBreaks, withoutOwnBreaks } from './text-breaks.ts';
import { MAX_JSON_CHARS, MAX_TEXT_CHARS } from './values.ts';

/** The media type of JSON-LD, also as shops misspell it. */
const JSON_LD_TYPE = /^\s*(?:\w+\/)?(?:ld[+-]json|json\+ld)\s*(?:;|$)/i;

const NO_ATTRIBUTES: Attributes = { get: () => undefined, toRecord: () => ({}) };

interface Capture {
  values: string[];
  index: number;
  depth: number;
  room: number;
  text: string;
  breaks: boolean;
}

/** Contents being filled; `seen` holds for each target the number of the element it took last. */
interface Filling extends Contents {
  seen: number[];
}

interface OpenRecord extends Filling {
  depth: number;
  scopeMatcher: SelectorMatcher | null;
}

export class PageReader implements MarkupHandler {
  readonly wantsComments = false;
  readonly #plan: PagePlan;
  readonly #counter: ElementCounter;
  readonly #matcher: SelectorMatcher;
  readonly #page: Filling;
  readonly #contents: PageContents;
  readonly #openRecords: OpenRecord[] = [];
  /** Matchers of closed records, for reuse. */
  readonly #freeMatchers: SelectorMatcher[] = [];
  readonly #recordTarget: number;
  readonly #captures: Capture[] = [];
  readonly #breaks = new TextBreaks();
  /** How many captures take the breaks of their text. */
  #breaking = 0;
  #microdata: MicrodataReader | null;
  /** Depth of the open script or style; 0 outside. */
  #silentDepth = 0;
  #json: string | null = null;
  #base: string | null = null;
  #serial = 0;
  #opening: Attributes = NO_ATTRIBUTES;
  #opensRecord = false;
  /** The record whose own selectors are being matched. */
  #scope: Filling | null = null;

  constructor(plan: PagePlan, budget: PageBudget) {
    this.#plan = plan;
    this.#recordTarget = plan.records?.by === 'target' ? plan.records.target : -1;
    this.#counter = new ElementCounter(plan.table.countsTypes || plan.scopeTable?.countsTypes === true);
    this.#matcher = new SelectorMatcher(plan.table);
    this.#page = createFilling(plan.targets.length);
    this.#microdata = plan.readsMicrodata ? new MicrodataReader(budget) : null;
    const [jsonLd, microdata] = [new LinkedData(), new LinkedData()];
    this.#contents = { page: this.#page, records: [], jsonLd, microdata, source: '', base: '', budget };
  }

  /** Everything extracted so far; complete when all elements are closed, and `end` was called. */
  get contents(): PageContents {
    return this.#contents;
  }

  /** Call when all elements are closed; `url`: the page's own. Throws PageLimitError. */
  end(url: string): void {
    const { jsonLd, microdata } = this.#contents;
    const base = (this.#base === null ? null : toUrl(this.#base, url)) ?? url;
    this.#contents.base = base;
    jsonLd.placeAt(url, base);
    microdata.placeAt(url, base);
    for (const item of this.#microdata?.items(base) ?? []) microdata.add(item);
    // What it has collected is as large as the items.
    this.#microdata = null;
  }

  get wantsText(): boolean {
    return this.#captures.length > 0 || this.#json !== null;
  }

  /** A start tag; `element` is the tree's, where one is built. Throws PageLimitError. */
  open(name: string, attributes: Attributes, element: Element | null = null): void {
    const view = this.#counter.open(name, attributes);
    this.#serial++;
    this.#opening = attributes;
    this.#opensRecord = false;
    this.#matcher.open(view, this.#onMatch);
    if (this.#opensRecord) this.#openRecord(element);
    for (const record of this.#openRecords) {
      if (record.scopeMatcher === null) continue;
      view.isScope = record.depth === this.#counter.depth;
      this.#scope = record;
      record.scopeMatcher.open(view, this.#onScopeMatch);
      view.isScope = false;
    }
    const texts = this.#microdata?.open(name, attributes, this.#counter.depth) ?? null;
    if (texts !== null) this.#capture(texts, 0, { maxChars: MAX_TEXT_CHARS, breaks: true });
    if (this.#breaking > 0) this.#breaks.open(name);
    if (this.#plan.readsBase && name === 'base') this.#base ??= attributes.get('href') ?? null;
    if (this.#silentDepth > 0 || (name !== 'script' && name !== 'style')) return;
    this.#silentDepth = this.#counter.depth;
    const isJson = name === 'script' && JSON_LD_TYPE.test(attributes.get('type') ?? '');
    if (isJson && this.#plan.readsJsonLd) this.#json = '';
  }

  text(text: string): void {
    if (this.#json !== null) this.#json += text.slice(0, MAX_JSON_CHARS - this.#json.length);
    const mark = this.#breaking > 0 && this.#silentDepth === 0 ? this.#breaks.text(text) : '';
    const clean = this.#breaking > 0 ? withoutOwnBreaks(text) : text;
    for (const capture of this.#captures) {
      if (this.#silentDepth > 0 && capture.depth !== this.#silentDepth) continue;
      if (capture.room <= 0) continue;
      if (capture.breaks && capture.text !== '') capture.text += mark;
      const added = capture.breaks ? clean : text;
      capture.text += added.length <= capture.room ? added : added.slice(0, capture.room);
      capture.room -= text.length;
      this.#contents.budget.spend('chars', text.length);
    }
  }

  comment(): void {
    // Comments yield no values.
  }

  /** An end tag. */
  close(): void {
    const { depth } = this.#counter;
    if (this.#breaking > 0) this.#breaks.close();
    if (this.#captures.length > 0) this.#finishCaptures(depth);
    this.#microdata?.close(depth);
    if (depth === this.#silentDepth) this.#endSilence();
    this.#matcher.close();
    for (const { scopeMatcher } of this.#openRecords) scopeMatcher?.close();
    if (this.#openRecords.at(-1)?.depth === depth) {
      const { scopeMatcher } = this.#openRecords.pop()!;
      if (scopeMatcher) this.#freeMatchers.push(scopeMatcher);
    }
    this.#counter.close();
  }

  readonly #onMatch = (target: number): void => {
    if (target === this.#recordTarget) {
      this.#opensRecord = true;
      return;
    }
    if (!this.#plan.targets[target]!.perRecord) {
      this.#take(this.#page, target);
      return;
    }
    for (const record of this.#openRecords) this.#take(record, target);
  };

  readonly #onScopeMatch = (target: number): void => this.#take(this.#scope!, target);

  #take(into: Filling, target: number): void {
    // Selectors of one list may match the same element; it counts once.
    if (into.seen[target] === this.#serial) return;
    const wanted = this.#plan.targets[target]!;
    const { attribute, limit, maxChars, breaks } = wanted;
    const values = into.values[target]!;
    if (values.length >= limit) return;
    if (attribute !== null) {
      const value = this.#opening.get(attribute);
      if (value === undefined) return;
      this.#contents.budget.spend('chars', value.length);
      const text = value.slice(0, maxChars);
      values.push(breaks ? withoutOwnBreaks(text) : text);
    } else this.#capture(values, values.push('') - 1, wanted);
    into.seen[target] = this.#serial;
  }

  /** Puts the text of the element that opens into the list, when it ends. */
  #capture(values: string[], index: number, { maxChars, breaks }: Pick<Target, 'maxChars' | 'breaks'>): void {
    this.#captures.push({ values, index, depth: this.#counter.depth, room: maxChars, text: '', breaks });
    if (breaks) this.#breaking++;
  }

  #openRecord(element: Element | null): void {
    const { records } = this.#contents;
    if (records.length >= MAX_ROWS) throw new PageLimitError(TOO_MANY_ROWS);
    if (this.#openRecords.length >= MAX_NESTED_RECORDS)
      throw new PageLimitError(`the records of the mapping's rows nest more than ${MAX_NESTED_RECORDS} deep`);
    const { scopeTable } = this.#plan;
    const scopeMatcher = scopeTable && (this.#freeMatchers.pop() ?? new SelectorMatcher(scopeTable));
    const record = {
      ...createFilling(this.#plan.targets.length),
      node: element,
      depth: this.#counter.depth,
      scopeMatcher,
    };
    this.#openRecords.push(record);
    records.push(record);
  }

  #finishCaptures(depth: number): void {
    let kept = 0;
    for (const capture of this.#captures) {
      if (capture.depth < depth) this.#captures[kept++] = capture;
      else {
        capture.values[capture.index] = capture.text;
        if (capture.breaks) this.#breaking--;
      }
    }
    this.#captures.length = kept;
  }

  #endSilence(): void {
    this.#silentDepth = 0;
    if (this.#json === null) return;
    this.#contents.budget.spend('jsonBlocks');
    const block = parseJsonBlock(this.#json, this.#contents.budget);
    if (block !== undefined) this.#contents.jsonLd.add(block);
    this.#json = null;
  }
}

function createFilling(targetCount: number): Filling {
  return {
    values: Array.from({ length: targetCount }, () => []),
    seen: Array.from({ length: targetCount }, () => 0),
    node: null,
    json: undefined,
  };
}

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
    attributes: NO_ATTRIBUTES,
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
