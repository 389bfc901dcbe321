/**
 * One page is one product: what several stored products share before they are published, and what follows from it.
 * Pure. docs/decisions/0037-one-page-one-product.md
 */
import { chainsOf, type Field, type Mapping, type Row, type Step } from '../../../../shared/domain/mapping.ts';
import { isAnyQuery } from '../../../../shared/domain/landing.ts';
import type { SharedPage, SharedResults, SharedRow } from '../../model/stores.ts';

/** The same where products are at many hosts: what names of many companies lead to is for sale, or gone. */
export const COMMON_FROM = 20;

/**
 * Number of products from which on a page or a row is common, for a run of this size: more than one in a hundred of
 * them.
 */
export function commonFrom(planned: number, isAtManyHosts: boolean): number {
  const least = planned < 1_000 ? Math.max(3, Math.min(10, Math.ceil(planned / 2))) : Math.floor(planned / 100) + 1;
  return isAtManyHosts ? Math.min(COMMON_FROM, least) : least;
}

/** What titles and IDs are called, as a field or at their source (`json_ld: name`, `[itemprop=sku]`). */
const TITLE_OR_ID = /(?:^|[_\W])(?:title|name|id|sku|gtin|ean|upc|isbn|mpn|asin|productid|h1)\d*(?:[_\W]|$)/i;
/** Rows with fewer values may rightly be the same. */
const MIN_VALUES = 3;
/** The fewest products with one title where the queries differ: fewer may be variants of one article. */
const SAME_TITLE = 10;

/** The fields by which people tell products apart. */
export function titleFields(mapping: Mapping): ReadonlySet<string> {
  const fields = mapping.pages.flatMap((page) => page.fields);
  return new Set(fields.filter(isTitle).map(({ name }) => name));
}

function isTitle(field: Field): boolean {
  const words = field.name.replace(/([a-z\d])(?=[A-Z])/g, '$1_');
  return TITLE_OR_ID.test(words) || chainsOf(field).some(([first]) => first !== undefined && isTitleSource(first));
}

function isTitleSource(step: Step): boolean {
  switch (step.type) {
    case 'css':
      return TITLE_OR_ID.test(step.selector);
    case 'xpath':
    case 'jsonpath':
      return TITLE_OR_ID.test(step.expression);
    case 'json_ld':
    case 'microdata':
      // `brand.name` is that of many products.
      return !step.path.includes('.') && TITLE_OR_ID.test(step.path);
    default:
      return false;
  }
}

/** True for a row that two products hardly share: it has a title or an ID, and three values or more. */
export function tellsApart(row: Row, titles: ReadonlySet<string>): boolean {
  let filled = 0;
  let hasTitle = false;
  for (const [name, value] of Object.entries(row)) {
    if (value === null || value === '') continue;
    filled++;
    hasTitle ||= titles.has(name);
  }
  return hasTitle && filled >= MIN_VALUES;
}

/** What is done about shared results. `fails`: pages whose products fail. `holds`: why the run is held. */
export interface SharedVerdict {
  fails: SharedPage[];
  holds: string | null;
  /** What the report lists. */
  notes: string[];
}

/** @param policy `site.same_page` */
export function judgeShared(
  { pages, rows }: Pick<SharedResults, 'pages' | 'rows'>,
  least: number,
  policy: 'fail' | 'store',
): SharedVerdict {
  // A page with as many titles as products is one of many pages, whose addresses say nothing of them.
  const isCommon = ({ page, products, ownerId, lacks, titles }: SharedPage): boolean => {
    if (products < least || titles * 2 > products) return false;
    // `?id=` may tell products apart by numbers that only the shop knows.
    if (isAnyQuery(page)) return titles * SAME_TITLE <= products && lacks.length > 0;
    return ownerId === null || lacks.length > 0;
  };
  const fails = policy === 'fail' ? pages.filter(isCommon) : [];
  const isNew = ({ products, before }: SharedRow): boolean => products >= least && before * 2 < products;
  const [copied] = policy === 'fail' ? rows.filter(isNew) : [];
  return {
    fails,
    holds:
      copied === undefined
        ? null
        : `${copied.products} products have one and the same row, for example ${listOf(copied)}`,
    notes: [
      ...pages
        .filter((page) => !fails.includes(page) && !isAnyQuery(page.page))
        .map((page) => `${page.products} products ended on ${page.page}: ${listOf(page)}`),
      ...rows
        .filter((row) => row !== copied)
        .map((row) => `${row.products} products have one and the same row: ${listOf(row)}`),
    ],
  };
}

/** Why the products of this page fail. */
export function failureOf({ products, page, ownerId, lacks }: SharedPage): string {
  const others = `the requests of ${products} products ended on ${page}${isAnyQuery(page) ? '…' : ''}`;
  return ownerId === null
    ? `${others}, which does not name any of them`
    : `${others}, the page of ${ownerId}, without ${lacks.join(', ')}`;
}

const listOf = ({ products, examples }: { products: number; examples: string[] }): string =>
  examples.join(', ') + (products > examples.length ? ' …' : '');
