/** The events of a markup parser, in page order. */

/** The attributes of one start tag. */
export interface Attributes {
  /** The first attribute of this lower-case name, entities decoded; '' without a value, undefined without it. */
  get(name: string): string | undefined;
  toRecord(): Record<string, string>;
}

/** Receives the start and end of each element, including those that the page omits, and the text between them. */
export interface MarkupHandler {
  /** False lets the parser skip text. It may change with every open() and close(). */
  readonly wantsText: boolean;
  readonly wantsComments: boolean;
  /** `name` is in lower case; `attributes` are valid during this call only. */
  open(name: string, attributes: Attributes): void;
  /** The innermost open element ends. */
  close(): void;
  /** Text with its entities decoded, in non-empty pieces of any length. */
  text(text: string): void;
  comment(text: string): void;
}

export interface MarkupParser {
  /** The next piece of the page, of any length. */
  write(text: string): void;
  /** No more text follows: elements still open end. */
  end(): void;
}
