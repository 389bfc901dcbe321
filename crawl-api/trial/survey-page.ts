/** What a page shows a person, for `init`: the heading that names it and the price beside it, by selectors for both. */
import { Element } from '../extract/dom/queries.ts';
import { ASIDE_NAMES } from '../../shared/domain/aside-names.ts';
import { isAmbiguous } from '../../shared/domain/ambiguous-number.ts';
import { descendants, isWithin, lastInside, orderOf, textOf, TreeBuilder, type TreeNode } from '../extract/dom/tree.ts';
import { HtmlParser } from '../extract/markup/html-parser.ts';
import { readCurrency, readNumber } from '../extract/numbers/read-number.ts';
import { PageBudget, PageLimitError } from '../extract/page-limits.ts';
import { replaceBreaks } from '../extract/text-breaks.ts';
import { ASIDE_TAGS, namesOf, PRICE_NAMES, TITLE_NAMES } from './element-names.ts';
import { SelectorIndex } from './selector-index.ts';

export interface PageSurvey {
  /** Selectors of the heading that names what the page is about. */
  heading: string[];
  /** Selectors of the price beside it; empty without one that is clearly its price. */
  price: string[];
}

/** Nothing is found on a page beyond the limits of extraction. */
export function surveyPage(html: string): PageSurvey {
  try {
    const budget = new PageBudget();
    const root = parseTree(html);
    const all = [...descendants(root, budget)].filter((node) => node instanceof Element);
    const index = new SelectorIndex(root, all);
    const heading = findHeading(all, budget);
    const price = heading && findPrice(heading, all, budget);
    return {
      heading: heading ? index.selectorsFor(heading, TITLE_NAMES) : [],
      // A selector that does not say so is no place where a person would look for a price.
      price: price ? index.selectorsFor(price, PRICE_NAMES).filter((selector) => PRICE_NAMES.test(selector)) : [],
    };
  } catch (error) {
    if (error instanceof PageLimitError) return { heading: [], price: [] };
    throw error;
  }
}

function parseTree(html: string): TreeNode {
  const tree = new TreeBuilder();
  const parser = new HtmlParser({
    wantsText: true,
    wantsComments: false,
    open: (name, attributes) => void tree.open(name, attributes.toRecord()),
    close: () => tree.close(),
    text: (text) => tree.text(text),
    comment: () => undefined,
  });
  parser.write(html);
  parser.end();
  return tree.end();
}

const HEADING = { chars: 1_000 };

/** The h1 that shares most words with what the page calls itself; null when none shares half of its own. */
function findHeading(all: readonly Element[], budget: PageBudget): Element | null {
  const title = all.find(({ name }) => name === 'title');
  const shared = all.find(({ name, attribs }) => name === 'meta' && attribs.property === 'og:title');
  const known = [shared?.attribs.content ?? '', title ? textOf(title, budget, HEADING) : ''].map(wordsOf);
  let best: Element | null = null;
  let most = 0;
  for (const element of all) {
    if (element.name !== 'h1') continue;
    const words = [...wordsOf(textOf(element, budget, HEADING))];
    const common = Math.max(...known.map((one) => words.filter((word) => one.has(word)).length));
    if (common > most && common * 2 >= words.length) [best, most] = [element, common];
  }
  return best;
}

/** Words in lower case; of scripts without spaces each character. */
const wordsOf = (text: string): Set<string> =>
  new Set(
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}]+/gu),
  );

interface Price {
  element: Element;
  amount: number;
  /** The page calls it a price, in its names. */
  isNamed: boolean;
}

/** Nodes between two prices that belong together: an old one and a new one, one with tax and one without. */
const NEAR = 25;

/**
 * The price in the smallest part of the page that has the heading and any, not counting those of other headings; null
 * when another one may be meant.
 */
function findPrice(heading: Element, all: readonly Element[], budget: PageBudget): Element | null {
  let above = heading;
  const prices = all.flatMap((element) => {
    if (isHeading(element, budget)) above = element;
    return isOfAnother(element, above, heading) ? [] : (priceOf(element, budget) ?? []);
  });
  for (let part = heading.parent; part !== null; part = part.parent) {
    const inside = prices.filter(({ element }) => isWithin(element, part));
    const behind = inside.filter(({ element }) => orderOf(element) > orderOf(heading));
    const near = behind.length > 0 ? behind : inside;
    const first = near.find(({ isNamed }) => isNamed) ?? near[0];
    if (first === undefined) continue;
    const isRival = ({ element, amount, isNamed }: Price): boolean =>
      amount !== first.amount &&
      (!first.isNamed || element.parent === first.element.parent || (isNamed && isNear(element, first.element)));
    return near.some(isRival) ? null : first.element;
  }
  return null;
}

/** Names what stands below it. A price alone, or a label of one, names nothing. */
function isHeading(element: Element, budget: PageBudget): boolean {
  if (!/^h[1-4]$/.test(element.name)) return false;
  const text = textOf(element, budget, HEADING).trim();
  const isLabel = PRICE_NAMES.test(text) && /^\P{L}*\p{L}+\P{L}*$/u.test(text);
  return text !== '' && !isLabel && !BARE_PRICE.test(text);
}

/** Another heading stands above it, and the heading of the page is further away. */
function isOfAnother(element: Element, above: Element, heading: Element): boolean {
  if (above === heading) return false;
  if (orderOf(above) > orderOf(heading)) return true;
  let part = element.parent;
  while (part !== null && !isWithin(above, part)) part = part.parent;
  return part !== null && !isWithin(heading, part);
}

const isNear = (one: Element, other: Element): boolean =>
  orderOf(one) - lastInside(other) < NEAR && orderOf(other) - lastInside(one) < NEAR;

/** Longest text of an element that has only a price in it, and the most nodes. */
const MAX_PRICE_CHARS = 40;
const MAX_PRICE_NODES = 30;
/** An amount and its currency: words and numbers beside it tell that it is something else. */
const BARE_PRICE = /^\D{0,5}\d[\d.,\s'’]*(?:[-–—]\s*)?[^\d-]{0,5}$/;

function priceOf(element: Element, budget: PageBudget): Price | null {
  if (lastInside(element) - orderOf(element) > MAX_PRICE_NODES || element.children.length === 0) return null;
  const text = textOf(element, budget, { chars: MAX_PRICE_CHARS * 10, breaks: true })
    .replaceAll(/\s+/g, ' ')
    .trim();
  if (text.length > MAX_PRICE_CHARS || !BARE_PRICE.test(replaceBreaks(text, ''))) return null;
  const isNamed = PRICE_NAMES.test(namesOf(element));
  if (!isNamed && readCurrency(text, null) === null) return null;
  const { value } = readNumber(text, { decimal: null, isMachine: false, price: { currency: null } });
  const amount = isAmbiguous(value) ? value.point : value;
  return amount === null || amount <= 0 || isAside(element) ? null : { element, amount, isNamed };
}

function isAside(element: Element): boolean {
  for (let up: unknown = element; up instanceof Element; up = up.parent) {
    const { style = '', hidden } = up.attribs;
    if (ASIDE_TAGS.has(up.name) || ASIDE_NAMES.test(namesOf(up)) || hidden !== undefined) return true;
    if (/display:\s*none|line-through/i.test(style)) return true;
  }
  return false;
}
