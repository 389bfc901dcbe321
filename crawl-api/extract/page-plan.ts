/** What is to be taken while a page streams by, and what was taken. */
import type { Element } from 'domhandler';
import type * as Dom from './dom/queries.ts';
import type { TreeNode } from './dom/tree.ts';
import type { PageBudget } from './page-limits.ts';
import type { StateTable } from './state-table.ts';

export type PageKind = 'html' | 'xml' | 'json';

/** Elements that a selector finds while the page streams by. */
export interface Target {
  /** The attribute to take instead of the text. */
  attribute: string | null;
  /** So many elements are taken. */
  limit: number;
  /** Of each one's text so many characters. */
  maxChars: number;
  /** Looked for in each record, not in the page as a whole. */
  perRecord: boolean;
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
  /** Selectors with `:scope`, matched against each record by itself; null without any. */
  scopeTable: StateTable | null;
  /** Null where the page is one record. */
  records: RecordSearch | null;
  readsJsonLd: boolean;
  readsSource: boolean;
  /** Links are made absolute: the page's <base> counts. */
  readsBase: boolean;
  /** Set when the page is kept as a tree. */
  dom: typeof Dom | null;
}

/** What was taken from one record, or from the page as a whole. */
export interface Contents {
  /** By target, in the order in which the elements open. */
  values: string[][];
  node: TreeNode | null;
  json: unknown;
}

export interface PageContents {
  page: Contents;
  records: Contents[];
  /** The JSON-LD blocks; of a JSON page the one value. */
  blocks: unknown[];
  source: string;
  base: string | null;
  budget: PageBudget;
}
