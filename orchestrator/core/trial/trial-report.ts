/** The output of `orchestrator extract`: the document of --json, made from the answer of the page reader. */
import { describeStep } from '../../../shared/domain/describe-step.ts';
import {
  chainsOf,
  type Field,
  fieldType,
  type FieldValue,
  type PageMapping,
  type Row,
} from '../../../shared/domain/mapping.ts';
import { Assertions, type Broken, detailOf } from '../model/assertions.ts';
import { plainPath } from '../config/path-spelling.ts';
import { needsDom } from '../../../shared/adapters/step-check.ts';
import type { FurtherAnswer, PageTrial, StepTrace } from '../../../shared/wire/page-trial.ts';
import type { PageReading } from './ask-crawl-api.ts';

export type FieldReport = ReturnType<typeof reportField> & { broken: string | null };

/** `partial`: pages that were left out may have rows of the product. */
export type FurtherReport = Pick<FurtherAnswer, 'requests' | 'leftOut' | 'partial' | 'notRead'>;

export interface TrialReport {
  url: string;
  by: 'http' | 'browser' | 'file';
  /** The body of a POST; omitted where the page is requested by GET. */
  post?: string;
  requests: { url: string; status: number | null }[];
  outcome: 'stored' | 'gone' | 'failed';
  /** The reason of a failed product, as in the ledger. */
  reason: string | null;
  detail: string | null;
  kind: 'html' | 'xml' | 'json' | null;
  mapping: string | null;
  /** Steps that need the whole page as a tree, with their field; empty when the page is parsed as a stream. */
  dom: string[];
  fields: FieldReport[];
  rows: { key: string | null; row: Record<string, FieldValue> }[] | null;
  links: string[];
  /** The further pages that were read, and what was left out; null where none was to be read. */
  further: FurtherReport | null;
  /** What JSON-LD and microdata of the page have, where a field found nothing there. */
  paths: { source: string; paths: string[] }[];
  /** Mistakes of the mapping that this page shows, one line each. */
  faults: string[];
}

/** The report of a trial. With `field` only that field is reported; the outcome still considers all of them. */
export function reportTrial(trial: PageTrial, answer: PageReading, field?: string): TrialReport {
  const { url, mapping } = trial;
  const base = {
    url,
    by: trial.file === null ? trial.site.render : ('file' as const),
    ...(trial.post && { post: trial.post.body }),
    requests: answer.requests,
    detail: null,
    kind: null,
    mapping: null,
    dom: [],
    fields: [],
    rows: null,
    links: [],
    further: null,
    paths: [],
    faults: [],
  };
  if (answer.outcome === 'failed') {
    const isGone = answer.reason === 'gone';
    const [outcome, reason] = isGone ? (['gone', null] as const) : (['failed', answer.reason] as const);
    return { ...base, outcome, reason, detail: answer.detail };
  }
  const page = mapping.pages.find(({ name }) => name === answer.mapping) ?? null;
  const { further } = answer;
  // Values of the product may be on any of its pages.
  const { rows, missing } = further ?? answer;
  const failed = further?.failed ?? null;
  const broken = page === null ? [] : judgeRows(page, rows ?? []);
  const failing = broken.find((one) => one.else === 'fail');
  return {
    ...base,
    ...(failed === null
      ? {
          outcome: missing === null && !failing ? ('stored' as const) : ('failed' as const),
          reason: missing !== null ? 'parse' : failing ? 'assert' : null,
          detail: missing === null ? (failing ? detailOf(failing) : null) : describeMissing(missing, page),
        }
      : { ...failed, outcome: 'failed' as const }),
    kind: answer.kind,
    mapping: page?.name ?? null,
    dom: page ? findDomSteps(page) : [],
    fields: (page?.fields ?? [])
      .filter((f) => field === undefined || f.name === field)
      .map((f) => ({
        ...reportField(f, page!.rows !== null, answer),
        /** How the first of its values breaks `assert`; null when none does. */
        broken: broken.find((one) => one.field === f.name)?.words ?? null,
      })),
    rows: page?.rows ? (rows ?? []) : null,
    links: answer.links,
    further: further ? furtherOf(further) : null,
    paths: answer.paths,
    faults: page && answer.kind !== 'json' ? jsonFaults(page, answer.kind) : [],
  };
}

const furtherOf = ({ requests, leftOut, partial, notRead }: FurtherAnswer): FurtherReport => ({
  requests,
  leftOut,
  partial,
  notRead,
});

/** What the rows of the page break, but for the change against rows that stand. */
function judgeRows(page: PageMapping, rows: readonly { row: Row }[]): Broken[] {
  const assertions = new Assertions({ pages: [page] });
  return rows.flatMap(({ row }) => assertions.judge(row, undefined));
}

/** What reads JSON alone, on a page that is none. */
function jsonFaults({ fields, rows }: PageMapping, kind: 'html' | 'xml'): string[] {
  const chains = [
    ...fields.map((field) => ({ name: field.name, chains: chainsOf(field) })),
    ...(rows ? [{ name: 'rows.each', chains: [[rows.each]] }] : []),
  ];
  return chains.flatMap(({ name, chains: [first, ...others] }) => {
    const step = first?.[0];
    if (step?.type !== 'jsonpath' || others.some(([one]) => one?.type !== 'jsonpath')) return [];
    const path = plainPath(step.expression);
    const instead = path === null || name === 'rows.each' ? '' : `; of JSON-LD in the page: { json_ld: ${path} }`;
    return `${name}: jsonpath reads a page that is JSON, and this one is ${kind.toUpperCase()}${instead}`;
  });
}

/** `value`: with rows that of the first record. */
function reportField(field: Field, inRows: boolean, answer: PageReading & { outcome: 'read' }) {
  /** What each step left, from the page to the value; empty when the page was not read for this field. */
  const { steps = [], source = null } = answer.trace.find((trace) => trace.field === field.name) ?? {};
  // The first record may have been dropped, and no row was made without a required value: the steps have it.
  const value = inRows ? null : answer.rows?.[0]?.row[field.name];
  const given = steps.filter((step) => step.source === (source ?? steps.at(-1)?.source));
  const { name, required } = field;
  const of = chainsOf(field).length;
  return {
    name,
    type: fieldType(field),
    required,
    value: value ?? lastValue(field, given),
    /** The number of sources of a field with several, and of the one that gave the value. */
    ...(of > 1 ? { sources: { of, won: source === null ? null : source + 1 } } : {}),
    steps: steps.map(({ source: from, ...step }) => ({ ...(of > 1 ? { source: from + 1 } : {}), ...step })),
  };
}

function lastValue(field: Field, steps: readonly StepTrace[]): FieldValue {
  const values = steps.at(-1)?.values ?? [];
  if (values.length === 0) return null;
  return field.steps.some((step) => step.type === 'all') ? values : values[0]!;
}

function describeMissing(missing: string, page: PageMapping | null): string {
  if (page === null) return 'no mapping has a url_pattern that fits this URL';
  if (missing !== 'rows' || page.fields.some((field) => field.name === missing))
    return `${missing} has no value, and it is required`;
  return page.rows?.empty
    ? 'the page has no record, nor what rows.empty looks for'
    : 'the page has no record; rows.empty can say what a page that rightly has none looks like';
}

/** Each step that needs a tree, with its field. */
function findDomSteps(page: PageMapping): string[] {
  const chains = [
    ...page.fields.map((field) => ({ name: field.name, steps: chainsOf(field).flat() })),
    ...page.urlParsers.map(({ description, steps }) => ({ name: description || 'url_parsers', steps })),
    ...(page.rows ? [{ name: 'rows.each', steps: [page.rows.each] }] : []),
    ...(page.rows?.empty ? [{ name: 'rows.empty', steps: [page.rows.empty] }] : []),
  ];
  return chains.flatMap(({ name, steps }) =>
    steps.filter((step) => needsDom(step)).map((step) => `${name}: ${describeStep(step)}`),
  );
}
