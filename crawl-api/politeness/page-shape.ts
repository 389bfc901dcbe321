/**
 * What a page is made of, as far as a ban page differs from a real one: is there text to read, does it consist of a script, does it send
 * the reader away.
 */

export interface PageShape {
  /** Characters of text a reader would see, white space not counted; counting stops at ENOUGH_CHARS. */
  textChars: number;
  /** What is written in <script> elements, up to SCRIPT_CHARS. */
  scripts: string;
  hasExternalScript: boolean;
  hasMetaRefresh: boolean;
  hasPasswordField: boolean;
  /** Elements other than html, head, body, script, noscript, style, title, link, meta and base. */
  otherElements: number;
  /** The last 16 to 32 K characters of the source: of a large page the beginning may be style alone. Of use only while the page has less than ENOUGH_CHARS. */
  tail: string;
}

/** A page with this much text has room for a product: it is none of the pages that the rules look for, whatever else it holds. */
export const ENOUGH_CHARS = 1_000;
