/** Compiles a mapping: once per process, for use with every page. */
import { AppError } from '../../shared/domain/errors.ts';
import {
  chainsOf,
  type ChainValue,
  type Field,
  fieldType,
  isMachineRead,
  isSelectStep,
  type Mapping,
  type PageMapping,
  type Scalar,
  type SelectStep,
  type Step,
} from '../../shared/domain/mapping.ts';
import { findFaultsOfPage, needsDom, type StepChecks } from '../../shared/adapters/step-faults.ts';
import type { CompiledChain, Source, Operation } from './chain.ts';
import { SourceCompiler } from './compile-source.ts';
import { type Libraries, loaded, loadLibraries } from './libraries.ts';
import type { PagePlan } from './page-plan.ts';
import { MAX_JSON_CHARS, MAX_TEXT_CHARS, MAX_VALUES } from './values.ts';
import { PagePass } from './page-pass.ts';
import { asText, mapValues, processValues, type StepContext, trimLinks } from './processors.ts';
import { BrokenText, hasBreaks, joinPieces, replaceBreaks } from './text-breaks.ts';
import { indexSections } from '../../shared/domain/url-patterns.ts';

export interface CompiledField {
  field: Field;
  /** One a source, in the order in which they are tried. */
  chains: CompiledChain[];
}

/** One page mapping, ready for pages. */
export interface CompiledPage {
  name: string;
  mapping: PageMapping;
  plan: PagePlan;
  fields: CompiledField[];
  links: CompiledChain[];
  /** What its meta tags say to robots; null where that does not count. */
  directives: CompiledChain | null;
  rows: { key: string; empty: Source | null } | null;
}

export interface CompiledMapping {
  /** The first page mapping that matches this URL; null when none does. */
  forUrl(url: string): CompiledPage | null;
}

export interface CompileOptions {
  /** Our name, if the links of pages whose meta tags say nofollow do not count. */
  obeyedAs?: string;
  /** Matches every selector in the tree, none while streaming: for tests. */
  allByTree?: boolean;
}

/** Loads only the libraries of the steps that are used. Throws `config-invalid` with every fault of the mapping. */
export async function compileMapping(mapping: Mapping, options: CompileOptions = {}): Promise<CompiledMapping> {
  const allByTree = options.allByTree ?? false;
  const libraries = await loadLibraries(mapping, allByTree);
  const checks = checksOf(libraries);
  const faults = mapping.pages.flatMap((page) => findFaultsOfPage(page, checks));
  if (faults.length > 0)
    throw new AppError('config-invalid', `the mapping cannot be used: ${faults.join('; ')}`, {
      hint: 'Try the mapping on one page with `orchestrator extract`.',
    });
  const sections = mapping.pages.map((page) => ({
    value: compilePage(page, libraries, options),
    patterns: page.urlPatterns,
  }));
  return { forUrl: indexSections(sections, (pattern) => loaded(libraries.regex).compilePattern(pattern)) };
}

function checksOf({ regex, jsonPath, date }: Libraries): StepChecks {
  return {
    findPatternFault: (pattern, group) => loaded(regex).findPatternFault(pattern, group),
    findJsonPathFault: (expression) => loaded(jsonPath).findJsonPathFault(expression),
    findDateFault: (reading) => loaded(date).findDateFault(reading),
  };
}

function compilePage(
  page: PageMapping,
  libraries: Libraries,
  { allByTree = false, obeyedAs }: CompileOptions,
): CompiledPage {
  // Records that are found in the tree are searched there, too.
  const inTree = allByTree || (page.rows !== null && needsDom(page.rows.each) !== null);
  const compiler = new SourceCompiler(libraries, inTree);
  const chain = (steps: readonly Step[], inRecord: boolean): CompiledChain =>
    compileChain(steps, inRecord, compiler, { libraries, allByTree });
  const fields = page.fields.map((field) => ({
    field,
    chains: chainsOf(field).map((steps) => chain(steps, page.rows !== null)),
  }));
  const links = page.urlParsers.map(({ steps }) => chain([...steps, { type: 'url' }], false));
  const directives = obeyedAs === undefined || links.length === 0 ? null : chain(directivesFor(obeyedAs), false);
  const empty = page.rows?.empty
    ? compiler.source(page.rows.empty, { limit: 1, maxChars: MAX_TEXT_CHARS, inRecord: false })
    : null;
  const records = page.rows ? compiler.records(page.rows.each) : null;
  const usesUrls =
    links.length > 0 || page.fields.flatMap(chainsOf).some((steps) => steps.some(({ type }) => type === 'url'));
  return {
    name: page.name,
    mapping: page,
    plan: compiler.plan(records, usesUrls),
    fields,
    links,
    directives,
    rows: page.rows && { key: page.rows.key, empty },
  };
}

/** The content of the meta tags for all robots, and for ours. */
function directivesFor(token: string): Step[] {
  const selector = ['robots', token].map((name) => `meta[name=${JSON.stringify(name)} i]`).join(', ');
  return [{ type: 'css', selector, attribute: 'content' }, { type: 'all' }];
}

function compileChain(
  steps: readonly Step[],
  inRecord: boolean,
  compiler: SourceCompiler,
  { libraries, allByTree }: { libraries: Libraries; allByTree: boolean },
): CompiledChain {
  const [first, ...rest] = steps;
  if (!first || !isSelectStep(first)) throw new Error('a chain must begin with a step that selects');
  const isSingle = !steps.some(({ type }) => ['first', 'all', 'join', 'split'].includes(type));
  // The input of a later selecting step, such as a script with the page's data, may be longer than a value.
  const maxChars = rest.some(isSelectStep) ? MAX_JSON_CHARS : MAX_TEXT_CHARS;
  const limit = isSingle ? 1 : MAX_VALUES;
  const selectsAt = steps.findLastIndex((step) => isSelectStep(step) && step.type !== 'regex');
  /** Whether the text that this step selects goes on, at most through patterns, to a step that reads it. */
  const breaks = (at: number): boolean => at === selectsAt && steps.slice(at).some(readsText);
  return {
    first,
    source: compiler.source(first, { limit, maxChars, inRecord, breaks: breaks(0) }),
    operations: rest.map((step, i) =>
      step.type === 'trim' && isOfLink(rest.slice(i + 1))
        ? { step, selects: false, apply: trimLinks }
        : compileOperation(step, libraries, { allByTree, limit, maxChars, breaks: breaks(i + 1) }),
    ),
    isSingle,
    type: fieldType({ steps: [...steps] }),
    isMachine: isMachineRead(steps),
  };
}

/** Whether nothing but a link is made of a value by these steps. */
function isOfLink(steps: readonly Step[]): boolean {
  return steps.find(({ type }) => !['trim', 'first', 'all', 'default'].includes(type))?.type === 'url';
}

/** Steps that read a number or a date from a text. */
function readsText({ type }: Step): boolean {
  return type === 'number' || type === 'integer' || type === 'price' || type === 'currency' || type === 'date';
}

interface OperationOptions {
  allByTree: boolean;
  /** Maximum number of values, and length of one. */
  limit: number;
  maxChars: number;
  breaks: boolean;
}

function compileOperation(step: Step, libraries: Libraries, options: OperationOptions): Operation {
  if (isSelectStep(step)) {
    const select = compileSelect(step, libraries, options);
    const apply = (values: ChainValue[], context: StepContext): ChainValue[] => {
      const found: Scalar[] = [];
      for (const value of values) {
        if (found.length >= MAX_VALUES) break;
        for (const one of select(asText(value), context)) found.push(one);
      }
      return found.slice(0, MAX_VALUES);
    };
    return { step, selects: true, apply };
  }
  if (step.type === 'date') {
    const { readDate } = loaded(libraries.date);
    const withTime = fieldType({ steps: [step] }) === 'datetime';
    const read = (text: string): string | null =>
      readDate(replaceBreaks(text, ' '), step, withTime) ??
      // `21.<br>11.<br>2026`
      (hasBreaks(text) ? readDate(joinPieces(text), step, withTime) : null);
    return { step, selects: false, apply: (values) => mapValues(values, (value) => read(asText(value))) };
  }
  return { step, selects: false, apply: (values, context) => processValues(step, values, context, options.maxChars) };
}

type Select = (text: string, context: StepContext) => readonly Scalar[];

/** How a text is read that a later step selects from: as a page of its own. */
const KINDS = { css: 'html', xpath: 'html', json_ld: 'json', microdata: 'html', jsonpath: 'json' } as const;

function compileSelect(step: SelectStep, libraries: Libraries, options: OperationOptions): Select {
  const { allByTree, limit, maxChars, breaks } = options;
  if (step.type === 'regex') {
    const pattern = loaded(libraries.regex).compilePattern(step.pattern);
    return (text, { budget }) => {
      const broken = new BrokenText(text);
      return pattern
        .spans(broken.plain, step.group, MAX_VALUES, () => budget.search())
        .map(([start, end]) => broken.slice(start, end).slice(0, maxChars));
    };
  }
  const compiler = new SourceCompiler(libraries, allByTree);
  const source = compiler.source(step, { limit, maxChars, inRecord: false, breaks });
  const plan = compiler.plan(null, false);
  return (text, context) => {
    const pass = new PagePass(plan, KINDS[step.type], context.base, context.budget);
    pass.write(text);
    const contents = pass.end();
    return source.read(contents, contents.page, context);
  };
}
