/** Parses one page: the reader takes values while it streams, and a tree is built where one is needed. */
import { Parser } from 'htmlparser2';
import { parseJsonBlock } from './linked-data/json-text.ts';
import { HtmlParser } from './markup/html-parser.ts';
import type { Attributes, MarkupHandler, MarkupParser } from './markup/markup-events.ts';
import { MAX_ROWS, MAX_SOURCE_CHARS, PageBudget, PageLimitError, TOO_MANY_ROWS } from './page-limits.ts';
import type { Contents, PageContents, PageKind, PagePlan } from './page-plan.ts';
import { PageReader } from './page-reader.ts';
import type { TreeBuilder } from './dom/tree.ts';

export class PagePass {
  readonly #plan: PagePlan;
  /** `text`: neither markup nor JSON. */
  readonly #kind: PageKind | 'text';
  readonly #url: string;
  readonly #parser: MarkupParser | null;
  readonly #tree: TreeBuilder | null;
  readonly #reader: PageReader;
  #source = '';

  /** `url`: the page's own. `shared`: passed when the text is a part of a page that has its own budget. */
  constructor(plan: PagePlan, kind: PageKind | 'text', url: string, shared: PageBudget | null = null) {
    const budget = shared ?? new PageBudget();
    this.#plan = plan;
    this.#kind = kind;
    this.#url = url;
    this.#reader = new PageReader(plan, budget);
    this.#tree =
      plan.dom && (kind === 'html' || kind === 'xml')
        ? new plan.dom.TreeBuilder(shared === null ? budget : null)
        : null;
    // One parser for both: the streaming matcher and the tree must see the same elements.
    const handler = this.#tree ? this.#treeHandler(this.#tree) : this.#reader;
    this.#parser = createParser(kind, handler);
  }

  /** Takes the next piece; throws PageLimitError. */
  write(text: string): void {
    if (this.#parser === null) {
      if (this.#source.length + text.length > MAX_SOURCE_CHARS)
        throw new PageLimitError(`the JSON has more than ${MAX_SOURCE_CHARS} characters`);
      this.#source += text;
      return;
    }
    if (this.#plan.readsSource && this.#source.length < MAX_SOURCE_CHARS)
      this.#source += text.slice(0, MAX_SOURCE_CHARS - this.#source.length);
    this.#parser.write(text);
  }

  /** Everything that was extracted; throws PageLimitError. */
  end(): PageContents {
    this.#parser?.end();
    this.#reader.end(this.#url);
    if (this.#tree) this.#endTree(this.#tree);
    const { contents } = this.#reader;
    contents.source = this.#source;
    if (this.#kind === 'json') this.#endJson(contents);
    return contents;
  }

  #treeHandler(tree: TreeBuilder): MarkupHandler {
    const reader = this.#reader;
    return {
      wantsText: true,
      wantsComments: true,
      open: (name, attributes) => {
        const element = tree.open(name, attributes.toRecord());
        reader.open(name, attributes, element);
      },
      close: () => {
        tree.close();
        reader.close();
      },
      text: (text) => {
        tree.text(text);
        reader.text(text);
      },
      comment: (text) => tree.comment(text),
    };
  }

  #endTree(tree: TreeBuilder): void {
    const { contents } = this.#reader;
    contents.page.node = tree.end();
    const { records } = this.#plan;
    if (records?.by === 'tree') {
      const found = records.find(contents.page.node, contents.budget);
      this.#addRecords(found.map((node) => ({ node })));
    }
  }

  #endJson(contents: PageContents): void {
    const json = parseJsonBlock(this.#source);
    contents.page.json = json;
    if (json === undefined) return;
    contents.jsonLd.add(json);
    const { records } = this.#plan;
    if (records?.by === 'json') this.#addRecords(records.find(json).map((one) => ({ json: one })));
  }

  #addRecords(found: readonly Partial<Contents>[]): void {
    if (found.length > MAX_ROWS) throw new PageLimitError(TOO_MANY_ROWS);
    const { page, records } = this.#reader.contents;
    const empty = { values: page.values.map(() => []), node: null, json: undefined };
    for (const record of found) records.push({ ...empty, ...record });
  }
}

function createParser(kind: PageKind | 'text', handler: MarkupHandler): MarkupParser | null {
  if (kind === 'html') return new HtmlParser(handler);
  return kind === 'xml' ? createXmlParser(handler) : null;
}

/** XML by htmlparser2, with names in lower case, as in selectors. */
function createXmlParser(handler: MarkupHandler): MarkupParser {
  let record: Record<string, string> = {};
  const attributes: Attributes = {
    // Own properties only: `[constructor]` would match what every object inherits.
    get: (name) => (Object.hasOwn(record, name) ? record[name] : undefined),
    toRecord: () => record,
  };
  return new Parser(
    {
      onopentag: (name, found) => {
        record = found;
        handler.open(name, attributes);
      },
      onclosetag: () => handler.close(),
      ontext: (text) => {
        if (text !== '' && handler.wantsText) handler.text(text);
      },
      oncomment: (text) => {
        if (handler.wantsComments) handler.comment(text);
      },
    },
    { xmlMode: true, lowerCaseTags: true, lowerCaseAttributeNames: true },
  );
}
