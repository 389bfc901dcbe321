/**
 * The stack of open elements, and HTML's rules for starts and ends. Reports every start and end, including those that
 * the page omits. Each rule costs the same however many elements are open, so that no page can make it slow.
 */
import { GREATER_THAN, type Markup, isSpace } from './characters.ts';
import { KNOWN_TAGS, svgSpelling, type Tag, tagAt, tagNamed } from './tags.ts';

const [IMAGE, IMAGE_ALIAS] = ['image', 'img'].map(tagNamed) as [Tag, Tag];
const [HTML, HEAD, BODY, FRAMESET] = ['html', 'head', 'body', 'frameset'].map(tagNamed) as [Tag, Tag, Tag, Tag];
const [FORM, PARAGRAPH, BUTTON, ANCHOR] = ['form', 'p', 'button', 'a'].map(tagNamed) as [Tag, Tag, Tag, Tag];
const [TABLE, TEMPLATE] = ['table', 'template'].map(tagNamed) as [Tag, Tag];
const [TBODY, TR, COL, COLGROUP] = ['tbody', 'tr', 'col', 'colgroup'].map(tagNamed) as [Tag, Tag, Tag, Tag];
const LISTS = ['ol', 'ul'].map(tagNamed);
const HEADINGS = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(tagNamed);

const SPECIAL_TAGS = KNOWN_TAGS.filter((tag) => tag.isSpecial);
const SCOPE_TAGS = KNOWN_TAGS.filter((tag) => tag.isScope);
const ITEM_BOUNDS = KNOWN_TAGS.filter((tag) => tag.boundsItems);

const NONE_OPEN: readonly number[] = KNOWN_TAGS.map(() => -1);

const MAX_EQUAL = 3;
const MAX_INTERRUPTED = 8;

type Stage = 'start' | 'html' | 'head' | 'after-head' | 'body';

/** A formatting element in a paragraph, whose end closes it: HTML opens it again before the next text. */
interface Formatting {
  tag: Tag;
  source: string;
  at: number;
  /** It opens again when another element closes it. */
  reopens: boolean;
}

export interface ElementEvents {
  /** @param source the start tag in the page's source; '' for one that the page omits */
  open(tag: Tag, source: string): void;
  close(): void;
}

export class OpenElements {
  /** The document has a doctype; without one, browsers use quirks mode, in which paragraphs may contain tables. */
  hasDoctype = false;
  /** True while text or any element may start others before it. A field, because each text reads it. */
  isPending = true;
  readonly #events: ElementEvents;
  readonly #stack: Tag[] = [];
  /** The next outer element of the same name, for each element of the stack; entries beyond the stack are stale. */
  readonly #previous: number[] = [];
  readonly #formatting: Formatting[] = [];
  /** The rules in force, for each element that changes them. */
  readonly #rules: NonNullable<Tag['rules']>[] = ['html'];
  /** The innermost open element of each name; -1 without one. */
  readonly #known = NONE_OPEN.slice();
  readonly #others = new Map<string, number>();
  readonly #interrupted: Formatting[] = [];
  #stage: Stage = 'start';

  constructor(events: ElementEvents) {
    this.#events = events;
  }

  /** True inside svg and math, where HTML's own rules for elements do not apply. */
  get isForeign(): boolean {
    return this.#rules[this.#rules.length - 1] !== 'html';
  }

  get depth(): number {
    return this.#stack.length;
  }

  get isInBody(): boolean {
    return this.#stage === 'body';
  }

  /** Whether the start tag may be needed again: push() requires it then. */
  mayReopen(tag: Tag): boolean {
    return tag.isFormatting && this.#innermost(PARAGRAPH) >= 0;
  }

  /** The tag whose name is at this position. */
  read(markup: Markup, start: number, end: number): Tag {
    const tag = tagAt(markup, start, end);
    if (this.#rules.length === 1) return tag === IMAGE ? IMAGE_ALIAS : tag;
    const spelling = svgSpelling(tag.name);
    if (spelling !== undefined && (this.#rules.at(-1) === 'svg' || this.#innermost(tagNamed(spelling)) >= 0))
      return tagNamed(spelling);
    return tag === IMAGE && !this.isForeign ? IMAGE_ALIAS : tag;
  }

  /** Starts and ends elements as required before this one; false when its start tag creates no element. */
  makeRoom(tag: Tag): boolean {
    return (tag.isPlain && !this.isPending) || this.#makeRoom(tag);
  }

  #makeRoom(tag: Tag): boolean {
    if (this.isForeign) return true;
    if (this.#stage === 'body' ? isFrame(tag) : !this.#enter(tag)) return false;
    if (tag === FORM && this.#innermost(FORM) >= 0) return false;
    if (tag.contexts !== null && this.#isInTable()) {
      while (!tag.contexts.has(this.#top()!.name)) this.pop();
      this.#openTableParts(tag);
      return true;
    }
    if (tag.follows !== null) this.#endItem(tag.follows);
    if (tag.endsParagraph && (tag !== TABLE || this.hasDoctype)) this.endParagraph();
    if (tag === BUTTON) this.end(BUTTON);
    if (tag.ends !== null) while (tag.ends.has(this.#top()?.name ?? '')) this.pop();
    if (this.#interrupted.length > 0) {
      if (tag === ANCHOR) this.#forget(tag);
      if (tag.reopens) this.#reopen();
    }
    return true;
  }

  /** Starts the elements that are required before this text. */
  beforeText(text: string, start: number, end: number): void {
    if (this.#stage !== 'body' && this.#isAtFrame() && !isBlank(text, start, end)) this.#enter(null);
    if (this.#interrupted.length > 0 && this.#top() !== TABLE && this.#top()?.contexts == null) this.#reopen();
  }

  /** @param source its start tag if mayReopen() is true, else '' */
  push(tag: Tag, source: string): void {
    const at = this.#stack.length;
    this.#stack[at] = tag;
    this.#previous[at] = this.#innermost(tag);
    this.#setInnermost(tag, at);
    if (source !== '') this.#formatting.push({ tag, source, at, reopens: false });
    if (tag.rules !== null) this.#rules.push(tag.rules);
    if (this.isPending && tag.isScope) this.#takeInterrupted();
  }

  /** Ends the innermost element. @param isOwnEnd by its own end tag */
  pop(isOwnEnd = false): void {
    const tag = this.#stack.pop()!;
    this.#setInnermost(tag, this.#previous[this.#stack.length]!);
    if (tag.rules !== null) this.#rules.pop();
    if (this.#formatting.length > 0) this.#notePopped(isOwnEnd);
    if (this.isPending) {
      if (tag.isScope) this.#takeInterrupted();
      if (tag === HEAD && this.#stage === 'head') this.#stage = 'after-head';
    }
    this.#events.close();
  }

  #notePopped(isOwnEnd: boolean): void {
    const last = this.#formatting.at(-1)!;
    if (last.at !== this.#stack.length) return;
    this.#formatting.pop();
    if (last.reopens && !isOwnEnd) this.#interrupt(last);
  }

  /**
   * Ends the innermost element if its name and `>` are at this position, as in nearly every end tag. Returns where the
   * following text starts; -1 if the end tag must be read in full.
   */
  popIfNamed({ text, codes }: Markup, start: number): number {
    // Inside svg and math a name may be another in a different case. The page's own frame ends with the page.
    if (this.#stack.length <= 2 || this.#rules.length > 1 || this.isPending) return -1;
    const { name } = this.#top()!;
    const end = start + name.length;
    if (end >= text.length || codes[end] !== GREATER_THAN || !text.startsWith(name, start)) return -1;
    this.pop(true);
    return end + 1;
  }

  /** Ends the element that an end tag of this name closes, and all inside it; false when there is none. */
  end(tag: Tag): boolean {
    if (tag === HTML || tag === BODY) {
      // html and body end with the page: what follows belongs to the body, too.
      if (this.#stage !== 'body' && this.#isAtFrame()) this.#enter(null);
      return false;
    }
    if (tag.isFormatting && this.#forget(tag)) return true;
    const at = this.#endOf(tag);
    if (at < 0) return false;
    this.#popAbove(at);
    this.pop(true);
    return true;
  }

  /** Ends an open paragraph; formatting elements that it cuts off reopen after it. */
  endParagraph(): void {
    const at = this.#innermost(PARAGRAPH);
    if (at < 0 || at < this.#innermostOf(SCOPE_TAGS) || at < this.#innermost(BUTTON)) return;
    for (const element of this.#formatting) if (element.at > at) element.reopens = true;
    this.#popAbove(at);
    this.pop();
  }

  /** Index of the element that such an end tag closes; -1 for a stray one. */
  #endOf(tag: Tag): number {
    // The end tag of any heading closes the open one.
    const at = HEADINGS.includes(tag) ? this.#innermostOf(HEADINGS) : this.#innermost(tag);
    if (at < 0) return -1;
    if (tag.rules !== null && tag.rules !== 'html') return at;
    if (tag === TABLE || tag.contexts !== null) {
      const outside = tag === TABLE ? TEMPLATE : TABLE;
      return at > this.#innermost(outside) ? at : -1;
    }
    if (tag.name === 'template' || tag.isScope) return at;
    if (!tag.isSpecial && !tag.isFormatting) return at > this.#innermostOf(SPECIAL_TAGS) ? at : -1;
    let from = this.#innermostOf(SCOPE_TAGS);
    if (tag.name === 'li') from = Math.max(from, this.#innermostOf(LISTS));
    if (tag === PARAGRAPH) from = Math.max(from, this.#innermost(BUTTON));
    return at > from ? at : -1;
  }

  /** Ends the previous item, unless it belongs to an outer list. */
  #endItem(followed: ReadonlySet<string>): void {
    if (LISTS.includes(this.#top()!)) return;
    const at = this.#innermostOf(ITEM_BOUNDS);
    if (at < 0 || !followed.has(this.#stack[at]!.name)) return;
    this.#popAbove(at);
    this.pop();
  }

  #isInTable(): boolean {
    return this.#innermost(TABLE) > this.#innermost(TEMPLATE);
  }

  #openTableParts(tag: Tag): void {
    if (tag === COL) {
      if (this.#top() === TABLE) this.#openImplied(COLGROUP);
      return;
    }
    if (tag !== TR && !isCell(tag)) return;
    if (this.#top() === TABLE) this.#openImplied(TBODY);
    if (isCell(tag) && this.#top() !== TR) this.#openImplied(TR);
  }

  /** Opens html, head and body where required before this element or text (null); false when it creates none. */
  #enter(tag: Tag | null): boolean {
    if (tag === HTML) {
      if (this.#stage !== 'start') return false;
      this.#stage = 'html';
      return true;
    }
    // Inside noscript or a template in the head.
    if (!this.#isAtFrame()) return tag === null || !isFrame(tag);
    if (tag === HEAD && this.#stage !== 'start' && this.#stage !== 'html') return false;
    if (this.#stage === 'start') this.#openImplied(HTML);
    if (this.#stage === 'start' || this.#stage === 'html') {
      this.#stage = 'head';
      if (tag === HEAD) return true;
      this.#openImplied(HEAD);
    }
    if (tag?.isMetadata === true) return true;
    // The compiler does not see that pop() changes the stage.
    if ((this.#stage as Stage) === 'head') this.pop();
    this.#stage = 'body';
    this.#notePending();
    if (tag !== BODY && tag !== FRAMESET) this.#openImplied(BODY);
    return true;
  }

  #isAtFrame(): boolean {
    const top = this.#top();
    return top === undefined || top === HTML || top === HEAD;
  }

  #openImplied(tag: Tag): void {
    this.push(tag, '');
    this.#events.open(tag, '');
  }

  /**
   * The standard reopens at most three equal elements; the other limit keeps each paragraph of a hostile page cheap.
   */
  #interrupt(element: Formatting): void {
    const all = this.#interrupted;
    const equal = all.filter((i) => i.tag === element.tag && i.source === element.source).length;
    if (equal < MAX_EQUAL && all.length < MAX_INTERRUPTED) all.unshift(element);
    this.#notePending();
  }

  #reopen(): void {
    for (const { tag, source } of this.#takeInterrupted()) {
      this.push(tag, source);
      this.#formatting.at(-1)!.reopens = true;
      this.#events.open(tag, source);
    }
  }

  /** The element does not reopen; false when it would not have anyway. */
  #forget(tag: Tag): boolean {
    const at = this.#interrupted.findLastIndex((i) => i.tag === tag);
    if (at >= 0) this.#interrupted.splice(at, 1);
    this.#notePending();
    return at >= 0;
  }

  #takeInterrupted(): Formatting[] {
    const all = this.#interrupted.splice(0);
    this.#notePending();
    return all;
  }

  #notePending(): void {
    this.isPending = this.#stage !== 'body' || this.#interrupted.length > 0;
  }

  #popAbove(at: number): void {
    while (this.#stack.length > at + 1) this.pop();
  }

  #top(): Tag | undefined {
    // Not by index: after a read at -1, V8 treats every read here as one of an unknown property.
    return this.#stack.at(-1);
  }

  #innermostOf(tags: readonly Tag[]): number {
    let innermost = -1;
    for (const { id } of tags) if (this.#known[id]! > innermost) innermost = this.#known[id]!;
    return innermost;
  }

  #innermost(tag: Tag): number {
    return tag.id >= 0 ? this.#known[tag.id]! : (this.#others.get(tag.name) ?? -1);
  }

  #setInnermost(tag: Tag, at: number): void {
    if (tag.id >= 0) this.#known[tag.id] = at;
    else if (at >= 0) this.#others.set(tag.name, at);
    else this.#others.delete(tag.name);
  }
}

const isFrame = (tag: Tag): boolean => tag === BODY || tag === HEAD || tag === HTML || tag === FRAMESET;

const isCell = (tag: Tag): boolean => tag.name === 'td' || tag.name === 'th';

function isBlank(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (!isSpace(code) && code !== 0xfeff) return false;
  }
  return true;
}
