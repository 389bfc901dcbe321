/** Reads one page as it streams in and extracts the rows and links that the mapping selects. */
import type { DecimalMark } from '../../shared/domain/currencies.ts';
import {
  chainsOf,
  type ChainValue,
  type FieldValue,
  type KeyedRow,
  MAX_LINKS,
  type Row,
  type ShownMarks,
} from '../../shared/domain/mapping.ts';
import {
  type CompiledChain,
  observeSource,
  runChain,
  type StepObserver,
  type Trace,
  type TracedField,
} from './chain.ts';
import type { CompiledField, CompiledMapping, CompiledPage } from './compile-mapping.ts';
import { PagePass } from './page-pass.ts';
import type { Contents, PageContents, PageKind } from './page-plan.ts';
import { asText, type StepContext, toUrl } from './processors.ts';
import { fitValues, rowBytes } from './values.ts';
import { metaForbids } from '../../shared/domain/nofollow.ts';
import { isAmbiguous } from '../../shared/domain/ambiguous-number.ts';

export type { PageKind } from './page-plan.ts';

/**
 * rows: one `{key: null, row}` for a plain mapping, any number with `rows`, none for a mapping without fields.
 * missing: the first required field without a value; or 'rows': neither records nor the sign that there are none; or
 * 'mapping': none matches this URL.
 * links: absolute URLs from url_parsers, each once.
 * partial: the values of a page without a required field; further pages of the product may have the rest. Omitted with
 * `rows`, and where the page has no value at all.
 * onlyDefaults: all values of the row come from the mapping's defaults, none from the page.
 */
export type Extraction =
  | { rows: KeyedRow[]; missing: null; links: string[]; onlyDefaults?: true }
  | { rows: null; missing: string; links: string[]; partial?: PartialRow };

interface PartialRow {
  row: Row;
  marks?: ShownMarks;
  missing: string[];
}

export interface ExtractorOptions {
  /** Record the values after every step, for trace(). */
  trace?: boolean;
}

export class PageExtractor {
  readonly #page: CompiledPage | null;
  readonly #pass: PagePass | null;
  readonly #trace: Trace | null;
  #contents: PageContents | null = null;

  /** `url`: the page's own; it selects the page mapping, and links are relative to it. */
  constructor(mapping: CompiledMapping, kind: PageKind, url: string, options: ExtractorOptions = {}) {
    this.#page = mapping.forUrl(url);
    this.#pass = this.#page && new PagePass(this.#page.plan, kind, url);
    this.#trace = options.trace ? new Map() : null;
  }

  /** Name of the page mapping in use; null when none matches this URL. */
  get mappingName(): string | null {
    return this.#page?.name ?? null;
  }

  /** Takes the next piece of the page, of any length. Throws PageLimitError, and no other error on any page. */
  write(text: string): void {
    this.#pass?.write(text);
  }

  /** Call once, when the whole page was written. Throws PageLimitError. */
  end(): Extraction {
    if (this.#page === null || this.#pass === null) return { rows: null, missing: 'mapping', links: [] };
    const contents = this.#pass.end();
    if (this.#trace) this.#contents = contents;
    const run = new PageRun(this.#page, contents, this.#trace);
    const links = run.links();
    return { ...run.rows(), links };
  }

  /** The paths that the page has, by `json_ld` or `microdata` and its node, where one gave nothing. As trace(). */
  paths(): Map<string, string[]> {
    const found = new Map<string, string[]>();
    for (const { field } of this.#page?.fields ?? []) {
      if (this.#contents === null || this.#trace?.get(field.name)?.source !== null) continue;
      for (const [step] of chainsOf(field)) {
        if (step?.type !== 'json_ld' && step?.type !== 'microdata') continue;
        const { type, node } = step;
        const data = type === 'json_ld' ? this.#contents.jsonLd : this.#contents.microdata;
        found.set(node === undefined ? type : `${type}, node: ${node}`, data.paths(node ?? null));
      }
    }
    return found;
  }

  /** The values after every step of each field; empty unless enabled, and before end(). */
  trace(): Trace {
    return this.#trace ?? new Map();
  }
}

type Rows =
  { rows: KeyedRow[]; missing: null; onlyDefaults?: true } | { rows: null; missing: string; partial?: PartialRow };

interface FoundValue {
  value: FieldValue;
  isDefault: boolean;
  mark: DecimalMark | null;
}

const NOTHING: FoundValue = { value: null, isDefault: false, mark: null };

class PageRun {
  readonly #page: CompiledPage;
  readonly #contents: PageContents;
  readonly #trace: Trace | null;
  /** Results of chains that read the page as a whole: the same for all its records. */
  readonly #ofPage = new Map<CompiledChain, FoundValue>();

  constructor(page: CompiledPage, contents: PageContents, trace: Trace | null) {
    this.#page = page;
    this.#contents = contents;
    this.#trace = trace;
  }

  rows(): Rows {
    if (this.#page.rows) return this.#manyRows(this.#page.rows);
    if (this.#page.fields.length === 0) return { rows: [], missing: null };
    const { missing, hasValue, ...read } = this.#rowOf(this.#contents.page, this.#trace);
    this.#contents.budget.spend('rowBytes', rowBytes(read.row));
    const [first] = missing;
    if (first === undefined)
      return { rows: [{ key: null, ...read }], missing: null, ...(hasValue ? {} : { onlyDefaults: true }) };
    return { rows: null, missing: first, ...(hasValue ? { partial: { ...read, missing } } : {}) };
  }

  links(): string[] {
    const links = new Set<string>();
    const { directives } = this.#page;
    if (directives !== null && this.#valuesOf(directives).some((value) => metaForbids(asText(value)))) return [];
    for (const chain of this.#page.links) {
      for (const value of this.#valuesOf(chain)) {
        const link = toUrl(asText(value), this.#contents.base);
        if (link !== null && links.size < MAX_LINKS) links.add(link);
      }
    }
    return [...links];
  }

  /** The values of a chain that reads the page as a whole. */
  #valuesOf(chain: CompiledChain): readonly ChainValue[] {
    const context = this.#contextOf(chain);
    return runChain(chain, chain.source.read(this.#contents, this.#contents.page, context), context).values;
  }

  /** Skips a record without its key or a required field; of records with the same key the first counts. */
  #manyRows({ key, empty }: NonNullable<CompiledPage['rows']>): Rows {
    const { page, records } = this.#contents;
    const rows = new Map<string, KeyedRow>();
    let firstMissing: string | null = null;
    for (const [i, record] of records.entries()) {
      const { missing, hasValue: _, ...read } = this.#rowOf(record, i === 0 ? this.#trace : null);
      const name = keyOf(read.row[key] ?? null);
      if (missing.length > 0 || name === null) firstMissing ??= missing[0] ?? key;
      else if (!rows.has(name)) {
        this.#contents.budget.spend('rowBytes', rowBytes(read.row));
        rows.set(name, { key: name, ...read });
      }
    }
    if (rows.size > 0) return { rows: [...rows.values()], missing: null };
    // No record is complete: the mapping does not fit the page.
    if (firstMissing !== null) return { rows: null, missing: firstMissing };
    const saysEmpty = empty?.read(this.#contents, page).some((value) => value !== false && value !== 0);
    return saysEmpty ? { rows: [], missing: null } : { rows: null, missing: 'rows' };
  }

  /** `missing`: required fields without a value. `hasValue`: at least one value comes from the page. */
  #rowOf(
    record: Contents,
    trace: Trace | null,
  ): { row: Row; marks?: ShownMarks; missing: string[]; hasValue: boolean } {
    const row: Row = {};
    let marks: ShownMarks | null = null;
    const missing: string[] = [];
    let hasValue = false;
    const sources = new Map<string, number>();
    for (const compiled of this.#page.fields) {
      const { field } = compiled;
      const { value, isDefault, mark } = this.#valueOf(compiled, record, sources, trace);
      if (mark !== null) (marks ??= {})[field.name] = mark;
      hasValue ||= value !== null && !isDefault;
      if (value === null && field.required) missing.push(field.name);
      row[field.name] = value;
    }
    return { row, ...(marks === null ? {} : { marks }), missing, hasValue };
  }

  /** `sources`: by field with several of them, the one that gave the value; this field's is added. */
  #valueOf(
    { field, chains }: CompiledField,
    record: Contents,
    sources: Map<string, number>,
    trace: Trace | null,
  ): FoundValue {
    const traced: TracedField = { steps: [], source: null };
    trace?.set(field.name, traced);
    const read = (source: number): FoundValue => {
      const found = this.#read(chains[source]!, record, trace && observeSource(traced, source));
      if (found.value !== null && !found.isDefault) traced.source = source;
      return found;
    };
    if (chains.length === 1) return read(0);
    if (field.sourceOf !== undefined) {
      const source = sources.get(field.sourceOf);
      return source === undefined ? NOTHING : read(source);
    }
    let best = NOTHING;
    for (const source of chains.keys()) {
      const found = read(source);
      const isFinal = !found.isDefault && yields(found.value);
      if (isFinal || (best === NOTHING && (found.isDefault || hasAmbiguous(found.value)))) {
        best = found;
        if (!found.isDefault) sources.set(field.name, source);
      }
      if (isFinal) break;
    }
    traced.source = sources.get(field.name) ?? null;
    return best;
  }

  #read(chain: CompiledChain, record: Contents, observer: StepObserver | null): FoundValue {
    const known = this.#ofPage.get(chain);
    if (known) return known;
    const context = this.#contextOf(chain);
    const selected = chain.source.read(this.#contents, record, context);
    const { values, isDefault } = runChain(chain, selected, context, observer);
    const [mark = null, another] = context.marks;
    const found = { value: fitValues(values, chain.type), isDefault, mark: another === undefined ? mark : null };
    if (chain.source.isOfPage) this.#ofPage.set(chain, found);
    return found;
  }

  #contextOf({ isMachine }: CompiledChain): StepContext {
    const { base, budget } = this.#contents;
    return { base, budget, isMachine, marks: new Set() };
  }
}

/** False for white space and undecided numbers: another source may have more. */
function yields(value: FieldValue): boolean {
  if (Array.isArray(value)) return value.some(yields);
  return value !== null && !isAmbiguous(value) && (typeof value !== 'string' || value.trim() !== '');
}

const hasAmbiguous = (value: FieldValue): boolean =>
  Array.isArray(value) ? value.some(isAmbiguous) : isAmbiguous(value);

/** The value as text to compare; of an ambiguous number its text, which is the same on every page that shows it. */
function keyOf(value: FieldValue): string | null {
  if (value === null) return null;
  return Array.isArray(value) ? value.map(asText).join(',') : asText(value);
}

/** True when at least one value was found on the page, or its list of records is rightly empty. */
export function hasValues(extraction: Extraction): boolean {
  return (
    extraction.rows !== null &&
    extraction.onlyDefaults !== true &&
    (extraction.rows.length === 0 || extraction.rows.some(({ row }) => Object.values(row).some(isValue)))
  );
}

const isValue = (value: unknown): boolean =>
  value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0);
