/**
 * The features of a page that tell a ban page from a real one: its amount of text, whether it is only a script, and
 * whether it redirects the reader.
 */

export interface PageShape {
  /** Visible characters, without white space; counting stops at ENOUGH_CHARS. */
  textChars: number;
  /** The content of <script> elements, up to SCRIPT_CHARS. */
  scripts: string;
  hasExternalScript: boolean;
  hasMetaRefresh: boolean;
  hasPasswordField: boolean;
  /** Elements other than html, head, body, script, noscript, style, title, link, meta and base. */
  otherElements: number;
  /** The last 16 to 32 K characters of a page with less than ENOUGH_CHARS: it may begin with style alone. */
  tail: string;
}

/** A page with this much text has room for a product, so no rule about empty pages applies to it. */
export const ENOUGH_CHARS = 1_000;
