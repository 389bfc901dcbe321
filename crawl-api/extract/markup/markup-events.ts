/** What a parser of markup tells of a page, in the order of the page. */

/** The attributes of one start tag. */
export interface Attributes {
  /** The value of the first attribute of this lower-case name, entities decoded; '' without a value, undefined without the attribute. */
  get(name: string): string | undefined;
  /** All of them as an object of its own. */
  toRecord(): Record<string, string>;
}

/** Hears of each element's start and end, also of those that the page leaves out, and of what stands between. */
export interface MarkupHandler {
  /** False lets the parser pass over text without reading it. It may change with every open() and close(). */
  readonly wantsText: boolean;
  readonly wantsComments: boolean;
  /** `name` is in lower case; `attributes` are valid during this call only. */
  open(name: string, attributes: Attributes): void;
  /** The element that opened last, of those still open, ends. */
  close(): void;
  /** Text with its entities decoded, in pieces of any length, none of them empty. */
  text(text: string): void;
  comment(text: string): void;
}

export interface MarkupParser {
  /** The next piece of the page, of any length. */
  write(text: string): void;
  /** Nothing follows: elements still open end. */
  end(): void;
}
