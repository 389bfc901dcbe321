/** Compiles the selecting steps of a mapping into sources of values, and collects what must be read from the page. */
import type { Scalar, SelectStep } from '../../shared/domain/mapping.ts';
import { type CompiledSelector, readSelector } from '../../shared/adapters/selector-check.ts';
import type { Source } from './chain.ts';
import { digitsAt, stringifyExactly } from './linked-data/json-text.ts';
import { parsePath } from './linked-data/linked-data.ts';
import { type Libraries, loaded } from './libraries.ts';
import type { FoundJson, JsonPath } from '../../shared/adapters/steps/json-path.ts';
import { MAX_ROWS, type PageBudget, PageLimitError } from './page-limits.ts';
import type { Contents, PageContents, PagePlan, RecordSearch, Target } from './page-plan.ts';
import { buildTable } from './selector-matcher.ts';
import { withoutOwnBreaks } from './text-breaks.ts';
import { MAX_VALUES } from './values.ts';

type Step<T extends SelectStep['type']> = Extract<SelectStep, { type: T }>;

export interface SourceOptions {
  limit: number;
  maxChars: number;
  /** Search each record, not the page. */
  inRecord: boolean;
  /** Texts of elements have their breaks: a number or a date is read from them. */
  breaks?: boolean;
}

/** Collects the sources of one page mapping and what they read. */
export class SourceCompiler {
  readonly #libraries: Libraries;
  readonly #allByTree: boolean;
  readonly #targets: Target[] = [];
  readonly #selectors: [target: number, selectors: CompiledSelector[]][] = [];
  readonly #scopeSelectors: [target: number, selectors: CompiledSelector[]][] = [];
  #readsJsonLd = false;
  #readsMicrodata = false;
  #readsSource = false;
  #needsTree = false;

  constructor(libraries: Libraries, allByTree: boolean) {
    this.#libraries = libraries;
    this.#allByTree = allByTree;
  }

  source(step: SelectStep, options: SourceOptions): Source {
    switch (step.type) {
      case 'css':
        return this.#css(step, options);
      case 'xpath':
        return this.#xpath(step, options);
      case 'json_ld': {
        this.#readsJsonLd = true;
        const path = parsePath(step);
        return { isOfPage: true, read: ({ jsonLd }) => jsonLd.read(path, options.limit).values };
      }
      case 'microdata': {
        this.#readsMicrodata = true;
        const path = parsePath(step, options.breaks);
        return {
          isOfPage: true,
          read: ({ microdata }, _record, context) => {
            const { values, isShown } = microdata.read(path, options.limit);
            if (context && !isShown) context.isMachine = true;
            return values;
          },
        };
      }
      case 'jsonpath': {
        const path = loaded(this.#libraries.jsonPath).compileJsonPath(step.expression);
        return fromContents(options, ({ json }, { budget }) =>
          toScalars(findJson(path, json, MAX_VALUES), options.maxChars, budget),
        );
      }
      case 'regex': {
        this.#readsSource = true;
        const pattern = loaded(this.#libraries.regex).compilePattern(step.pattern);
        return {
          isOfPage: true,
          read: ({ source, budget }) =>
            pattern
              .spans(source, step.group, options.limit, () => budget.search())
              .map(([start, end]) => source.slice(start, Math.min(end, start + options.maxChars))),
        };
      }
    }
  }

  /** How `rows.each` finds the records of the page. */
  records(each: SelectStep): RecordSearch {
    if (each.type === 'css') {
      const reading = readSelector(each.selector);
      if (reading.kind === 'stream' && !this.#allByTree) {
        const target = this.#addTarget({ attribute: null, limit: 0, maxChars: 0, perRecord: false, breaks: false });
        this.#selectors.push([target, reading.selectors]);
        return { by: 'target', target };
      }
      this.#needsTree = true;
      const find = loaded(this.#libraries.dom).compileCss(each.selector);
      return { by: 'tree', find: (root, budget) => [...find(root, budget)] };
    }
    if (each.type === 'xpath') {
      this.#needsTree = true;
      const { Element, parseXPath, selectByXPath } = loaded(this.#libraries.dom);
      const expression = parseXPath(each.expression);
      return {
        by: 'tree',
        find: (root, budget) => selectByXPath(expression, root, budget).filter((node) => node instanceof Element),
      };
    }
    if (each.type !== 'jsonpath') throw new Error(`records cannot be found by ${each.type}`);
    const path = loaded(this.#libraries.jsonPath).compileJsonPath(each.expression);
    return { by: 'json', find: (json) => findJson(path, json, MAX_ROWS + 1).map(({ value }) => value) };
  }

  /** The plan for a page that serves all sources compiled so far. */
  plan(records: RecordSearch | null, readsBase: boolean): PagePlan {
    return {
      targets: this.#targets,
      table: buildTable(this.#selectors),
      scopeTable: this.#scopeSelectors.length > 0 ? buildTable(this.#scopeSelectors) : null,
      records,
      readsJsonLd: this.#readsJsonLd,
      readsMicrodata: this.#readsMicrodata,
      readsSource: this.#readsSource,
      readsBase: readsBase || this.#readsJsonLd || this.#readsMicrodata,
      dom: this.#needsTree ? loaded(this.#libraries.dom) : null,
    };
  }

  #addTarget(target: Target): number {
    return this.#targets.push(target) - 1;
  }

  #css(step: Step<'css'>, options: SourceOptions): Source {
    const reading = readSelector(step.selector);
    const attribute = step.attribute?.toLowerCase() ?? null;
    if (reading.kind !== 'stream' || this.#allByTree) return this.#cssByTree(step.selector, attribute, options);
    const { limit, maxChars, inRecord, breaks = false } = options;
    const target = this.#addTarget({ attribute, limit, maxChars, perRecord: inRecord, breaks });
    (reading.usesScope ? this.#scopeSelectors : this.#selectors).push([target, reading.selectors]);
    return fromContents(options, ({ values }) => values[target]!);
  }

  #cssByTree(selector: string, attribute: string | null, options: SourceOptions): Source {
    this.#needsTree = true;
    const { compileCss, textOf } = loaded(this.#libraries.dom);
    const find = compileCss(selector);
    const { breaks = false } = options;
    return fromContents(options, ({ node }, { budget }) => {
      const values: string[] = [];
      if (node === null) return values;
      for (const element of find(node, budget)) {
        if (attribute === null) values.push(textOf(element, budget, { chars: options.maxChars, breaks }));
        else {
          const value = element.attribs[attribute];
          if (typeof value !== 'string') continue;
          budget.spend('chars', value.length);
          const text = value.slice(0, options.maxChars);
          values.push(breaks ? withoutOwnBreaks(text) : text);
        }
        if (values.length >= options.limit) break;
      }
      return values;
    });
  }

  #xpath(step: Step<'xpath'>, options: SourceOptions): Source {
    this.#needsTree = true;
    const { evaluateXPath, parseXPath } = loaded(this.#libraries.dom);
    const expression = parseXPath(step.expression);
    const limits = { values: options.limit, chars: options.maxChars, breaks: options.breaks ?? false };
    return fromContents(options, ({ node }, { budget }) =>
      node === null ? [] : evaluateXPath(expression, node, budget, limits),
    );
  }
}

function fromContents({ inRecord }: SourceOptions, read: (contents: Contents, page: PageContents) => Scalar[]): Source {
  return { isOfPage: !inRecord, read: (page, record) => read(inRecord ? record : page.page, page) };
}

/** The values of the first `limit` nodes; none without JSON. Throws PageLimitError. */
function findJson(path: JsonPath, json: unknown, limit: number): FoundJson[] {
  if (json === undefined) return [];
  try {
    return path.find(json, limit);
  } catch (error) {
    throw new PageLimitError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** Converts JSON values for a chain: null is no value, objects and arrays become JSON text. Throws PageLimitError. */
function toScalars(found: readonly FoundJson[], maxChars: number, budget: PageBudget): Scalar[] {
  const scalars: Scalar[] = [];
  for (const { value, holder, key } of found) {
    if (typeof value === 'number') scalars.push(digitsAt(holder, key) ?? value);
    else if (typeof value === 'boolean') scalars.push(value);
    else if (value !== null && value !== undefined) {
      const text = typeof value === 'string' ? value : stringify(value);
      budget.spend('chars', text.length);
      scalars.push(text.slice(0, maxChars));
    }
  }
  return scalars;
}

function stringify(value: object): string {
  try {
    return stringifyExactly(value);
  } catch (error) {
    throw new PageLimitError('the JSON nests too deep', { cause: error });
  }
}
