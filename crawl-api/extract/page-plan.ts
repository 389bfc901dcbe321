/** What to extract while a page streams by, and the result. */
import type { Element } from 'domhandler';
import type * as Dom from './dom/queries.ts';
import type { TreeNode } from './dom/tree.ts';
import type { LinkedData } from './linked-data/linked-data.ts';
import type { PageBudget } from './page-limits.ts';
import type { StateTable } from './selector-matcher.ts';

export type PageKind = 'html' | 'xml' | 'json';

/** Elements that a selector finds while the page streams by. */
export interface Target {
  /** The attribute to take instead of the text. */
  attribute: string | null;
  limit: number;
  maxChars: number;
  /** True when it is searched in each record, not in the page as a whole. */
  perRecord: boolean;
  /** The text has its breaks (text-breaks.ts). */
  breaks: boolean;
}

/** How the records of a page are found: by a target, in the tree, or in the page's JSON. */
export type RecordSearch =
  | { by: 'target'; target: number }
  | { by: 'tree'; find: (root: TreeNode, budget: PageBudget) => Element[] }
  | { by: 'json'; find: (json: unknown) => unknown[] };

export interface PagePlan {
  targets: Target[];
  /** The selectors of all targets, matched against the whole page. */
  table: StateTable;
  /** Selectors with `:scope`, matched within each record; null without any. */
  scopeTable: StateTable | null;
  /** How records are found; null where the page is one record. */
  records: RecordSearch | null;
  readsJsonLd: boolean;
  readsMicrodata: boolean;
  readsSource: boolean;
  /** Links are made absolute or compared, so the page's <base> is needed. */
  readsBase: boolean;
  dom: typeof Dom | null;
}

/** The values extracted from one record, or from the page as a whole. */
export interface Contents {
  /** The values found, by target, in the order in which the elements open. */
  values: string[][];
  node: TreeNode | null;
  json: unknown;
}

export interface PageContents {
  page: Contents;
  records: Contents[];
  /** The JSON-LD blocks; of a JSON page its one value. */
  jsonLd: LinkedData;
  microdata: LinkedData;
  source: string;
  /** What links are relative to: the page's URL or its <base>. */
  base: string;
  budget: PageBudget;
}
