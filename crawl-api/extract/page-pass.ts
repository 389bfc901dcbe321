/** Parses one page: the reader takes values while it streams, and a tree is built where one is needed. */
import { parseJsonBlock } from './json-ld.ts';
import { HtmlParser } from './markup/html-parser.ts';
import type { MarkupHandler, MarkupParser } from './markup/markup-events.ts';
import { XmlParser } from './markup/xml-parser.ts';
import { MAX_ROWS, MAX_SOURCE_CHARS, PageBudget, PageLimitError, TOO_MANY_ROWS } from './page-limits.ts';
import type { PageContents, PageKind, PagePlan } from './page-plan.ts';
import { PageReader } from './page-reader.ts';
import type { TreeBuilder } from './dom/tree.ts';

export class PagePass {
  readonly #plan: PagePlan;
  readonly #parser: MarkupParser | null;
  readonly #tree: TreeBuilder | null;
  #reader: PageReader;
  #source = '';

  /** `budget`: passed when the text is a part of a page that has its own. */
  constructor(plan: PagePlan, kind: PageKind, budget = new PageBudget()) {
    this.#plan = plan;
    this.#reader = new PageReader(plan, budget);
    this.#tree = kind !== 'json' && plan.dom ? new plan.dom.TreeBuilder() : null;
    // One parser for both: the streaming matcher and the tree must see the same elements.
    const handler = this.#tree ? this.#treeHandler(this.#tree) : this.#reader;
    this.#parser = kind === 'json' ? null : kind === 'xml' ? new XmlParser(handler) : new HtmlParser(handler);
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
    if (this.#tree) this.#endTree(this.#tree);
    const { contents } = this.#reader;
    contents.source = this.#source;
    if (this.#parser === null) this.#endJson(contents);
    return contents;
  }

  #treeHandler(tree: TreeBuilder): MarkupHandler {
    const reader = this.#plan.records?.by === 'tree' ? null : this.#reader;
    return {
      wantsText: true,
      wantsComments: true,
      open: (name, attributes) => {
        const element = tree.open(name, attributes.toRecord());
        reader?.open(name, attributes, element);
      },
      close: () => {
        tree.close();
        reader?.close();
      },
      text: (text) => {
        tree.text(text);
        reader?.text(text);
      },
      comment: (text) => tree.comment(text),
    };
  }

  /** Records that need the tree are known now: the page is read again, from the tree. */
  #endTree(tree: TreeBuilder): void {
    const root = tree.end();
    const { records, dom } = this.#plan;
    if (records?.by === 'tree') {
      const { budget } = this.#reader.contents;
      const elements = records.find(root, budget);
      if (elements.length > MAX_ROWS) throw new PageLimitError(TOO_MANY_ROWS);
      this.#reader = new PageReader(this.#plan, budget, new Set(elements));
      dom!.replay(root, this.#reader);
    }
    this.#reader.contents.page.node = root;
  }

  #endJson(contents: PageContents): void {
    const json = parseJsonBlock(this.#source);
    contents.page.json = json;
    if (json === undefined) return;
    contents.blocks.push(json);
    const { records } = this.#plan;
    if (records?.by !== 'json') return;
    const values = contents.page.values.map(() => []);
    const found = records.find(json);
    if (found.length > MAX_ROWS) throw new PageLimitError(TOO_MANY_ROWS);
    for (const record of found) contents.records.push({ values, node: null, json: record });
  }
}
